//! The simulated rig: an HTTP server with the dialect of a real engine, cards, faults.

mod cache;
mod core;
pub mod memory;
mod prose;
mod reply;
pub mod rig;
mod timing;
mod tokens;
