//! The only place that draws and touches the world.

mod input;
pub mod keeper;
mod signals;
mod terminal;
