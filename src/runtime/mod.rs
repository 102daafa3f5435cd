//! The only place that draws and touches the world.

pub mod keeper;
