//! How the server is started and stopped.

mod check;
mod child;
mod listener;
mod log;
mod process;
mod procfs;
mod record;
mod template;

pub use listener::{Listener as ListeningSocket, parse as listening_sockets};
pub use process::{Process, Settings};
pub use template::{Rendered, render};

use crate::host::HostError;
use crate::profile::Launch;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// One configuration to serve with: the launch and the context length per request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    pub context: u64,
    pub launch: Launch,
}

/// A process, told apart from every other that ever had its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    pub pid: u32,
    /// Start time in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub start_ticks: u64,
    pub boot_id: String,
}

/// What a service is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// Running, with the configuration it was started with, where that is on record.
    Running {
        id: ProcessId,
        config: Option<Config>,
        started_unix_ms: i64,
    },
    /// Not running. The exit code where we saw it, negative for a signal.
    Stopped { exit: Option<i32> },
}

/// Who takes the connections at the address of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Port {
    /// A process of the service.
    Ours,
    /// Something else; named in words.
    Other(String),
    Nobody,
    /// It cannot be told, and why.
    Unknown(String),
}

/// A failed action on a service: what was tried, what happened, what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("{tried}: {what}. {advice}")]
    Failed {
        tried: String,
        what: String,
        advice: String,
    },
    /// Something else runs where the service should be; it is named and never touched.
    #[error("{what}; vramp did not start it and does not stop it")]
    Stranger { what: String },
}

/// A way to run a server. It stops only what it can prove to be its own.
///
/// Whoever waits for a start or a stop may give up waiting: the action then goes on, and a later one waits for its end.
#[async_trait]
pub trait Service: Send + Sync {
    /// As the screen names it: `process llama-server`, `sglang-qwen.service`.
    fn name(&self) -> String;

    async fn status(&self) -> Result<Status, ServiceError>;

    /// Checks that `config` could be started: program found, directory there, log writable. Changes nothing.
    async fn validate(&self, config: &Config) -> Result<(), ServiceError>;

    /// Starts it. The new process outlives the cockpit; its output goes to the log.
    async fn start(&self, config: &Config) -> Result<ProcessId, ServiceError>;

    /// Stops it and all of its processes, the gentle way first, and waits for the end.
    async fn stop(&self) -> Result<(), ServiceError>;

    /// Where the log ends now, in bytes; a later [`Service::log_since`] starts there.
    async fn log_end(&self) -> Result<u64, ServiceError>;

    /// Whole log lines from byte `from` on, and the offset to go on from.
    async fn log_since(&self, from: u64) -> Result<(Vec<String>, u64), ServiceError>;

    /// Every process id of the running service (the whole session or control group), for matching with the cards.
    async fn pids(&self) -> Result<Vec<u32>, ServiceError>;

    /// Who takes the connections at the address of the service: while another server holds it, answers come from the wrong one.
    async fn port(&self) -> Result<Port, ServiceError> {
        Ok(Port::Unknown(format!(
            "{} does not tell who holds its port",
            self.name()
        )))
    }

    /// Whether a trial of this service ends with a reboot, in words for the screen.
    fn trial_note(&self, production: Option<u64>) -> String;
}
