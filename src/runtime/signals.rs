//! Signals that end, stop or wake the program.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Leave; the number goes into the exit code.
    End(i32),
    /// Stop as Ctrl-Z does.
    Stop,
    /// We were stopped by somebody else and run again.
    Continued,
}

/// The signals that are ours.
pub struct Signals {
    term: Signal,
    hup: Signal,
    int: Signal,
    quit: Signal,
    stop: Signal,
    cont: Signal,
}

impl Signals {
    /// Takes them over.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn new() -> io::Result<Self> {
        Ok(Signals {
            term: signal(SignalKind::terminate())?,
            hup: signal(SignalKind::hangup())?,
            int: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            stop: signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
            cont: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.term.recv() => Asked::End(15),
            _ = self.hup.recv() => Asked::End(1),
            _ = self.int.recv() => Asked::End(2),
            _ = self.quit.recv() => Asked::End(3),
            _ = self.stop.recv() => Asked::Stop,
            _ = self.cont.recv() => Asked::Continued,
        }
    }
}

/// Stops the whole process group, as the shell expects of Ctrl-Z; returns when somebody continues us.
pub fn stop_group() {
    let _ = rustix::process::kill_current_process_group(rustix::process::Signal::STOP);
}
