//! Where commands run and files live.

mod local;
mod who;

pub use local::{Local, boot_id, read_file, remove_file, write_atomic};
pub use who::who;

use async_trait::async_trait;
use std::path::Path;

/// A failed action on a host: what was tried, what happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("{tried}: {what}")]
    Failed { tried: String, what: String },
    #[error("the connection to {host} is lost: {what}")]
    Lost { host: String, what: String },
}

/// What a command printed and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// This machine, or another one. Commands are argument vectors, never joined shell text.
#[async_trait]
pub trait Host: Send + Sync {
    /// `localhost`, `user@host`.
    fn name(&self) -> String;

    /// Runs a command to its end.
    async fn run(&self, argv: &[String]) -> Result<Output, HostError>;

    /// Reads a file; `None` if it does not exist.
    async fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, HostError>;

    /// Writes a file whole or not at all (temporary file beside it, synced, renamed), keeping mode and owner of one that exists.
    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError>;

    /// Removes a file and makes that last (the folder is synced); one that does not exist is no error.
    async fn remove(&self, path: &Path) -> Result<(), HostError>;

    /// The boot that the host runs on: processes of another boot are gone.
    async fn boot_id(&self) -> Result<String, HostError>;
}
