//! The simulated rig: an HTTP server with the dialect of a real engine, cards, faults. Everything that it says names itself
//! simulated.

mod api;
mod args;
mod boot;
mod cache;
mod cards;
mod core;
mod engine;
mod log;
pub mod memory;
mod prose;
mod raw;
mod reply;
pub mod rig;
mod server;
mod timing;
mod tokens;

pub use args::{RawArgs, SimArgs, UsageFor};
pub use log::Log;
pub use server::{SimError, run, serve};
