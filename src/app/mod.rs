//! The cockpit's core: no tokio, no I/O, no clock, no ratatui.

pub mod task;
