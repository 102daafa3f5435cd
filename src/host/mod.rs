//! Where commands run and files live.

mod child;
mod files;
mod lines;
mod local;
mod lock;
mod quote;
mod ssh;
mod sudo;
pub mod vitals;
mod who;

pub use lines::{Ended, Lines, Streamed};
pub use local::{Local, boot_id, read_file, remove_file, write_atomic};
pub use lock::{Locked, Unlock};
pub use quote::quote;
pub use ssh::{Address, Ssh};
pub use sudo::Sudo;
pub use who::who;

use async_trait::async_trait;
use std::path::{Path, PathBuf};

/// A failed action on a host: what was tried, what happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("{tried}: {what}")]
    Failed { tried: String, what: String },
    /// Nothing is known of what was under way: it may have been done or not. The server goes on as it is.
    #[error("the connection to {host} is lost: {what}")]
    Lost { host: String, what: String },
}

impl HostError {
    /// Whether the host could not be reached, as against having refused.
    pub fn is_lost(&self) -> bool {
        matches!(self, HostError::Lost { .. })
    }
}

/// What a command printed and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// A file as the host has it; of a symbolic link, what it points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    pub is_dir: bool,
    /// Permission bits, `0o7777` at most.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// When its content was last changed, in whole seconds since 1970-01-01 UTC.
    pub modified_unix_s: i64,
}

/// This machine, or another one. Commands are argument vectors, never joined shell text.
#[async_trait]
pub trait Host: Send + Sync {
    /// `localhost`, `user@host`.
    fn name(&self) -> String;

    /// Whether commands and files are those of the machine that vramp itself runs on, so that `/proc` here is the host's.
    fn is_local(&self) -> bool;

    /// How often the host was found lost. One that was lost meanwhile may explain a failure.
    fn losses(&self) -> u64 {
        0
    }

    /// A path as seen from the root; a relative one counts from where commands run.
    async fn absolute(&self, path: &Path) -> Result<PathBuf, HostError> {
        if path.is_absolute() {
            return Ok(path.to_path_buf());
        }
        let output = self.run(&["pwd".to_string()]).await?;
        let folder = String::from_utf8_lossy(&output.stdout);
        Ok(Path::new(folder.trim_end_matches('\n')).join(path))
    }

    /// Runs a command to its end, with nothing to read. Dropping the future ends the command where it runs here, and leaves it
    /// alone on another host.
    async fn run(&self, argv: &[String]) -> Result<Output, HostError> {
        self.run_with(argv, b"").await
    }

    /// Runs a command to its end; `input` is what it reads.
    async fn run_with(&self, argv: &[String], input: &[u8]) -> Result<Output, HostError>;

    /// Runs a command and gives its lines as they come. Dropping them ends the command.
    async fn stream(&self, argv: &[String]) -> Result<Lines, HostError>;

    /// Reads a file; `None` if it does not exist.
    async fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, HostError>;

    /// Writes a file whole or not at all (temporary file beside it, synced, renamed), keeping mode and owner of one that exists.
    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError>;

    /// Removes a file and makes that last (the folder is synced); one that does not exist is no error.
    async fn remove(&self, path: &Path) -> Result<(), HostError>;

    /// What kind of file it is; `None` if it does not exist.
    async fn stat(&self, path: &Path) -> Result<Option<FileStat>, HostError>;

    /// Copies a file beside itself under a name that no other has, with mode, owner and time, and gives the name:
    /// `FILE.vramp-20260301-120431`. An earlier backup is never written over.
    async fn backup(&self, path: &Path) -> Result<PathBuf, HostError>;

    /// Makes a folder and those above it, for the owner alone where they are new.
    async fn make_dir(&self, path: &Path) -> Result<(), HostError>;

    /// Takes the kernel's lock on a file (made if missing) and writes `who` into it, or says what its holder wrote. The lock ends
    /// with its holder, however that ends; nothing is left to be cleared away.
    async fn lock(&self, path: &Path, who: &str) -> Result<Locked, HostError>;

    /// The boot that the host runs on: processes of another boot are gone.
    async fn boot_id(&self) -> Result<String, HostError>;
}

/// An error that says what was tried and what happened.
fn failed(tried: String, what: impl ToString) -> HostError {
    HostError::Failed {
        tried,
        what: what.to_string(),
    }
}

/// A command as an error names it: not longer than a line.
fn tried(argv: &[String]) -> String {
    const MOST: usize = 160;
    let whole = crate::units::clean(&argv.join(" "));
    match whole.char_indices().nth(MOST) {
        Some((at, _)) => format!("run {}…", whole.get(..at).unwrap_or_default()),
        None => format!("run {whole}"),
    }
}
