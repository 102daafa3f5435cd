//! Pieces that panes and dialogs are made of.

pub mod axis;
pub mod bar;
pub mod dots;
pub mod field;
pub mod frame;
#[cfg(test)]
pub mod paper;
pub mod table;
pub mod time_chart;
pub mod trend;
pub mod xy_chart;
