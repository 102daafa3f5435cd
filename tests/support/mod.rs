//! What the whole-program tests share: a terminal, a home of their own, real servers.

// Every test binary uses a part of this.
#![allow(dead_code)]

pub mod bench;
pub mod docker;
pub mod http;
pub mod llama;
pub mod place;
pub mod server;
pub mod sshd;
pub mod systemd;
pub mod term;
pub mod unit;
pub mod walk;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Waits until `done` gives a value, looking ten times a second.
pub fn until<T>(what: &str, patience: Duration, mut done: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(
            start.elapsed() < patience,
            "waited {} s in vain: {what}",
            patience.as_secs()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Seconds as a duration.
pub fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Held by a test that must not share the machine with others of its file: it measures, or its server needs all cores.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    // A test that failed is no reason for the next to fail.
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
