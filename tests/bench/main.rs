//! The benchmark and the checks over real sockets, against a server of known behaviour.

mod checks;
mod client;
mod server;
