//! The simulated rig: an HTTP server with the dialect of a real engine, cards, faults.

mod cache;
mod core;
mod timing;
