//! Since when a thread is awake: what it reads has waited no longer than that, beyond the time it needed to wake. The age of data where
//! the kernel's stamps cannot be had.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    static WOKE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// This thread has just woken up. For the runtime to call.
pub fn note() {
    WOKE.set(Some(Instant::now()));
}

/// How long ago this thread woke up; nothing if nobody said so.
pub fn ago() -> Duration {
    WOKE.get().map_or(Duration::ZERO, |at| at.elapsed())
}
