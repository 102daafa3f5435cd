//! The benchmark and the checks over real sockets, against a server of known behaviour.

// Tests may stop where they cannot go on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod checks;
mod client;
mod failures;
mod load;
mod server;
#[path = "../support/mod.rs"]
mod support;
mod table;
mod targets;
