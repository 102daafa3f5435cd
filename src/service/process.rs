//! The service `process`: vramp starts the server itself, from the launch of the profile.
//!
//! The server runs in a session of its own (`setsid`), with nothing to read and its output appended to a log on disk, so that
//! the end of the cockpit never takes it down. What was started stands in `process.json`; the next cockpit adopts the process if
//! number, start time and boot are those on record.
//!
//! A cockpit may be killed between starting the server and recording its number. Therefore the record is written twice: before
//! the start with a mark that goes into the server's environment (`VRAMP_SERVICE`), and after it with the number. Who finds a
//! record without a number looks for the session leader with that mark, and completes the record. So there is no moment at which
//! a server runs and nothing on disk leads to it.
//!
//! Only processes of the recorded start are ever signalled: the group of a leader that was just compared with the record, and
//! single processes through a handle (`pidfd`) that is opened first and compared then, so that a number given anew to somebody
//! else is never hit.

mod work;

use self::work::{Work, failed};
use super::{Config, Port, ProcessId, Service, ServiceError, Standing, Status};
use crate::profile::Launch;
use async_trait::async_trait;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where and how one process service runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Names the service in the log and on screen: the program of the profile's launch.
    pub launch: Launch,
    /// Where record, intent and lock lie; made when needed, for the owner alone.
    pub state_dir: PathBuf,
    /// The server's output; `None`: `server.log` in the state directory.
    pub log: Option<PathBuf>,
    /// The address that the server will serve at.
    pub url: String,
    /// How long the server may take to end by itself before it is killed.
    pub stop_grace: Duration,
    /// The confirmed context, and where it is kept: the file and the name of the profile.
    pub production: Option<u64>,
    pub profile: Option<(PathBuf, String)>,
}

/// A server that vramp starts and stops itself.
#[derive(Debug, Clone)]
pub struct Process {
    inner: Arc<Work>,
}

impl Process {
    /// A process service. Touches nothing.
    pub fn new(settings: Settings) -> Process {
        Process {
            inner: Arc::new(Work::new(settings)),
        }
    }

    /// `/proc` and disks may block for long: never on the threads that others wait for.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Work) -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let inner = Arc::clone(&self.inner);
        tokio::task::spawn_blocking(move || work(&inner))
            .await
            .unwrap_or_else(|error| {
                Err(failed(
                    "look after the server process",
                    error,
                    "Try again; the log of vramp may say more",
                ))
            })
    }
}

#[async_trait]
impl Service for Process {
    fn name(&self) -> String {
        self.inner.name.clone()
    }

    async fn status(&self) -> Result<Status, ServiceError> {
        self.blocking(Work::status).await
    }

    async fn validate(&self, config: &Config) -> Result<(), ServiceError> {
        let config = config.clone();
        self.blocking(move |inner| inner.validate(&config).map(|_| ()))
            .await
    }

    async fn written_in(&self) -> Result<Option<String>, ServiceError> {
        Ok(self.inner.written_in())
    }

    async fn start(&self, config: &Config) -> Result<ProcessId, ServiceError> {
        let config = config.clone();
        self.blocking(move |inner| inner.start(config)).await
    }

    async fn stop(&self) -> Result<(), ServiceError> {
        self.blocking(Work::stop).await
    }

    async fn log_end(&self) -> Result<u64, ServiceError> {
        self.blocking(Work::log_end).await
    }

    async fn log_since(&self, from: u64) -> Result<(Vec<String>, u64), ServiceError> {
        self.blocking(move |inner| inner.log_since(from)).await
    }

    async fn pids(&self) -> Result<Vec<u32>, ServiceError> {
        self.blocking(|inner| Ok(inner.members()?.iter().map(|one| one.pid).collect()))
            .await
    }

    async fn port(&self) -> Result<Port, ServiceError> {
        self.blocking(Work::port).await
    }

    fn log_name(&self) -> Option<String> {
        Some(self.inner.log.display().to_string())
    }

    async fn standing(&self) -> Result<Standing, ServiceError> {
        Ok(self.inner.standing())
    }

    async fn confirm(&self, config: &Config) -> Result<String, ServiceError> {
        let config = config.clone();
        self.blocking(move |inner| inner.confirm(&config)).await
    }
}

#[cfg(test)]
mod tests;
