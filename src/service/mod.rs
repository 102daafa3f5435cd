//! How the server is started and stopped.

mod check;
mod child;
pub mod command;
pub mod compose;
mod inspect;
mod listener;
mod log;
mod process;
mod procfs;
mod record;
mod started;
pub mod systemd;
mod template;

pub use command::Command;
pub use compose::Compose;
pub use inspect::{Inspected, inspected};
pub use listener::{Listener as ListeningSocket, parse as listening_sockets};
pub use process::{Process, Settings};
pub use procfs::parse_all as stats;
pub use systemd::Systemd;
pub use template::{Rendered, render};

use crate::host::HostError;
use crate::profile::Launch;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Bytes of the recent past of a log that are worth seeing of a server that was found running.
const LOG_PAST: u64 = 64 * 1024;

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

/// What stands behind a running server: what a reboot brings, and what is only a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// What is started, with `{context}` where a context goes. Contexts are filled into it.
    pub launch: Launch,
    /// What a reboot brings, or a start by somebody else; the context per request. `None`: nothing is confirmed.
    pub production: Option<u64>,
    /// Whether a trial of this service ends with a reboot, in words for the screen.
    pub trial_note: String,
    /// When the production value comes back by itself unless the trial is kept, unix milliseconds.
    pub deadline_unix_ms: Option<i64>,
    /// Why the launch cannot be changed but for the context, where that is so.
    pub launch_fixed: Option<String>,
    /// What else the operator should know, in sentences.
    pub notes: Vec<String>,
}

/// A time limit on a trial, carried by something that outlives the cockpit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadline {
    /// From now.
    pub after: Duration,
    /// The memory of each card without the server (index, bytes): nothing is started before the cards are back there.
    pub levels: Vec<(u32, u64)>,
}

/// A way to run a server. It stops only what it can prove to be its own.
///
/// Whoever waits for a start or a stop may give up waiting: the action then goes on, and a later one waits for its end.
///
/// A configuration that is started is a *trial* unless it is what a reboot brings. [`Service::confirm`] makes it that;
/// [`Service::discard_trial`] leaves what a reboot brings as it is and takes away what would still start the trial.
#[async_trait]
pub trait Service: Send + Sync {
    /// As the screen names it: `process llama-server`, `sglang-qwen.service`.
    fn name(&self) -> String;

    async fn status(&self) -> Result<Status, ServiceError>;

    /// What the service's manager says of the last end of the server, in systemd's words: `success` (it was
    /// asked to end), `oom-kill`, `timeout`, `exit-code`, `signal`, `core-dump`, `watchdog`. `None` where nobody says more than the exit code.
    async fn how_it_ended(&self) -> Option<String> {
        None
    }

    /// Checks that `config` could be started: program found, directory there, log writable. Changes nothing.
    async fn validate(&self, config: &Config) -> Result<(), ServiceError>;

    /// What stands behind it. Changes nothing.
    async fn standing(&self) -> Result<Standing, ServiceError>;

    /// The place where the context length is written that a reboot brings: the file and what tells the place in it. `None`: in the
    /// operator's own hands. Changes nothing.
    async fn written_in(&self) -> Result<Option<String>, ServiceError> {
        Ok(None)
    }

    /// Starts it, as a trial unless `config` is what a reboot brings. The new process outlives the cockpit; its output goes to the log.
    async fn start(&self, config: &Config) -> Result<ProcessId, ServiceError>;

    /// Stops it and all of its processes, the gentle way first, and waits for the end.
    async fn stop(&self) -> Result<(), ServiceError>;

    /// From now on any start brings what a reboot brings. What runs goes on.
    async fn discard_trial(&self) -> Result<(), ServiceError> {
        Ok(())
    }

    /// The server is proven: brings back what fell with its stop. Gives what the operator should know.
    async fn settle(&self) -> Result<Vec<String>, ServiceError> {
        Ok(Vec::new())
    }

    /// Makes the running trial `config` what a reboot brings, without another restart. Gives what was changed, in words. Only the
    /// operator's confirmation may lead here.
    async fn confirm(&self, config: &Config) -> Result<String, ServiceError>;

    /// Unless it is disarmed in time, the production value comes back by itself, also when this program is gone. An earlier deadline
    /// is replaced.
    async fn arm(&self, _deadline: &Deadline) -> Result<(), ServiceError> {
        self.may_arm().await
    }

    /// Whether something that outlives this program could carry a deadline. Changes nothing.
    async fn may_arm(&self) -> Result<(), ServiceError> {
        Err(ServiceError::Failed {
            tried: format!("give the trial of {} a deadline", self.name()),
            what: "nothing outside this program could bring the production value back".to_string(),
            advice: "Leave the deadline out, or run the server as a systemd service".to_string(),
        })
    }

    /// Takes the deadline away, if there is one; an error if it is too late.
    async fn disarm(&self) -> Result<(), ServiceError> {
        Ok(())
    }

    /// Where its output goes, for the screen.
    fn log_name(&self) -> Option<String>;

    /// Where the log ends now, as a position; a later [`Service::log_since`] starts there.
    async fn log_end(&self) -> Result<u64, ServiceError>;

    /// A position from which the recent past of the log can be read.
    async fn log_past(&self) -> Result<u64, ServiceError> {
        Ok(self.log_end().await?.saturating_sub(LOG_PAST))
    }

    /// Whole log lines from position `from` on, and the position to go on from.
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
}
