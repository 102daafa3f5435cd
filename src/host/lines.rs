//! The lines of a running command, as they come.

use super::HostError;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// What a running command does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Streamed {
    /// A line of its standard output, without its end. As it was written, but for bytes that are no UTF-8: not fit for a screen.
    Line(String),
    /// It has ended.
    Ended(Ended),
    /// It cannot be followed any more.
    Failed(HostError),
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ended {
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// The last of what it wrote to standard error.
    pub stderr: String,
}

/// A command that is being followed. Dropping this ends it.
#[derive(Debug)]
pub struct Lines {
    receiver: mpsc::Receiver<Streamed>,
    task: JoinHandle<()>,
}

impl Lines {
    pub(super) fn new(receiver: mpsc::Receiver<Streamed>, task: JoinHandle<()>) -> Lines {
        Lines { receiver, task }
    }

    /// What comes next; `None` after the end. A command whose lines nobody takes is made to wait. Giving up waiting loses nothing.
    pub async fn next(&mut self) -> Option<Streamed> {
        self.receiver.recv().await
    }

    /// What is there already; `None` if that is nothing.
    pub fn try_next(&mut self) -> Option<Streamed> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // With its task goes the child, which is killed.
        self.task.abort();
    }
}
