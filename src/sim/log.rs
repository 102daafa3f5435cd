//! The server's log on its output.

use crate::clock;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Where the log lines go.
pub struct Log {
    out: Mutex<Box<dyn Write + Send>>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Log")
    }
}

impl Log {
    pub fn new(out: impl Write + Send + 'static) -> Self {
        Log {
            out: Mutex::new(Box::new(out)),
        }
    }

    /// A line as it is.
    pub fn raw(&self, text: &str) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody is left to tell when the output is gone.
        let _ = writeln!(out, "{text}");
        let _ = out.flush();
    }

    /// A line of the server's front.
    pub fn line(&self, text: &str) {
        self.raw(&format!("[{}] {text}", clock::date_time(clock::unix_ms())));
    }

    /// A line of the first rank.
    pub fn rank(&self, text: &str) {
        self.raw(&format!(
            "[{} TP0] {text}",
            clock::date_time(clock::unix_ms())
        ));
    }
}
