//! The service `systemd`: a unit of the system's manager or of the user's own, over a host.
//!
//! A trial is a runtime drop-in that is proven to be the last of the unit's, so that a reboot brings the production value; what that is
//! stands in the unit's files, and nowhere else. A confirmation edits the number where it lives and takes the trial away. Nothing is
//! cached: what runs is read from the process, what a reboot brings from the files.

mod confirm;
mod deadline;
mod fallen;
mod files;
mod journal;
mod manager;
mod running;
mod trial;
mod work;

use crate::host::Host;
use crate::launch::Dialect;
use crate::service::{
    Config, Deadline, Port, ProcessId, Service, ServiceError, Standing, Status, listener, procfs,
};
use crate::units::thousands;
use async_trait::async_trait;
use deadline::Stands;
use journal::Journal;
use manager::Manager;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

/// Which unit, and how it is to be handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// With its ending: `qwen.service`.
    pub unit: String,
    /// A unit of the user's own manager.
    pub user: bool,
    /// Change it through `sudo -n`.
    pub sudo: bool,
    /// Where record, intent and lock lie, on the host.
    pub state_dir: PathBuf,
    /// The address that the server serves at.
    pub url: String,
    /// What the unit starts, where its command does not tell.
    pub engine: Option<Dialect>,
    /// How long the server may take to end by itself before it is killed; `None`: as long as its unit says.
    pub stop_grace: Option<Duration>,
    /// How long the script of a deadline waits for the cards.
    pub release_after: Duration,
}

/// A server that systemd runs.
#[derive(Clone)]
pub struct Systemd {
    inner: Arc<Inner>,
}

struct Inner {
    manager: Manager,
    settings: Settings,
    journal: Mutex<Journal>,
    /// A start or stop goes on when nobody waits for it any more: the next one waits for its end.
    acting: Mutex<()>,
    /// Whether it ran at the last look.
    runs: AtomicBool,
}

impl Systemd {
    /// A service on `host`. Touches nothing.
    pub fn new(host: Arc<dyn Host>, settings: Settings) -> Systemd {
        Systemd {
            inner: Arc::new(Inner {
                manager: Manager {
                    host,
                    unit: settings.unit.clone(),
                    user: settings.user,
                    sudo: settings.sudo,
                },
                settings,
                journal: Mutex::default(),
                acting: Mutex::new(()),
                runs: AtomicBool::new(false),
            }),
        }
    }

    /// Carries an action out to its end, whoever gives up waiting for it.
    async fn to_its_end<T: Send + 'static, F>(
        &self,
        action: impl FnOnce(Arc<Inner>) -> F + Send + 'static,
    ) -> Result<T, ServiceError>
    where
        F: Future<Output = Result<T, ServiceError>> + Send + 'static,
    {
        let inner = Arc::clone(&self.inner);
        let task = tokio::spawn(async move {
            let held = Arc::clone(&inner);
            let _alone = held.acting.lock().await;
            action(inner).await
        });
        task.await.unwrap_or_else(|error| {
            Err(ServiceError::Failed {
                tried: format!("look after {}", self.inner.settings.unit),
                what: error.to_string(),
                advice: "Try again; the log of vramp may say more".to_string(),
            })
        })
    }
}

impl Inner {
    fn deadline(&self) -> deadline::Ground<'_> {
        deadline::Ground {
            manager: &self.manager,
            state_dir: &self.settings.state_dir,
            url: &self.settings.url,
            release_s: self.settings.release_after.as_secs(),
        }
    }

    async fn status(&self) -> Result<Status, ServiceError> {
        let shown = self.manager.show().await?;
        let id = match shown.main_pid() {
            Some(pid) => running::identify(&self.manager, pid).await?,
            None => None,
        };
        self.runs.store(id.is_some(), Ordering::Relaxed);
        let Some(id) = id else {
            return Ok(Status::Stopped { exit: shown.exit() });
        };
        Ok(Status::Running {
            config: self.config(&shown, id.pid).await,
            id,
            started_unix_ms: 0,
        })
    }

    async fn standing(&self) -> Result<Standing, ServiceError> {
        let shown = self.manager.show().await?;
        let started = self.production(&shown).await?.started()?;
        let mut notes = Vec::new();
        let deadline_unix_ms = match self.deadline().stands().await? {
            Stands::None => None,
            Stands::Armed(at) => Some(at),
            Stands::Passed(words) => {
                notes.push(format!("the last deadline passed: {words}"));
                None
            }
        };
        let kind = if self.settings.user {
            "the user's manager or a reboot"
        } else {
            "a reboot"
        };
        Ok(Standing {
            trial_note: format!(
                "a trial of {} ends with {kind}; its files bring the production value {}",
                self.settings.unit,
                thousands(started.context)
            ),
            launch: started.launch,
            production: Some(started.context),
            deadline_unix_ms,
            launch_fixed: Some(format!(
                "this command stands in {}: vramp changes its context alone; edit the unit by hand for the rest, then attach again",
                self.settings.unit
            )),
            notes,
        })
    }

    async fn port(&self) -> Result<Port, ServiceError> {
        if !self.manager.host.is_local() {
            return Ok(Port::Unknown(format!(
                "who listens on {} is not looked at from here",
                self.manager.host.name()
            )));
        }
        let listeners = listener::at(&self.settings.url);
        let Some(first) = listeners.first() else {
            return Ok(Port::Nobody);
        };
        let pids = self.pids().await?;
        let ours = running::sockets(&self.manager, &pids).await;
        if !pids.is_empty() && ours.is_empty() {
            return Ok(Port::Unknown(format!(
                "the connections of {} may not be looked at by this user",
                self.settings.unit
            )));
        }
        if listeners.iter().any(|one| ours.contains(&one.inode)) {
            return Ok(Port::Ours);
        }
        let inodes: Vec<u64> = listeners.iter().map(|one| one.inode).collect();
        let who = match procfs::socket_holders(&inodes).first() {
            Some(stat) => format!("{} (pid {})", stat.name, stat.pid),
            None => "a process that this user may not look at".to_string(),
        };
        Ok(Port::Other(format!("{who} listens on {}", first.address)))
    }

    async fn pids(&self) -> Result<Vec<u32>, ServiceError> {
        let shown = self.manager.show().await?;
        let mut pids = running::members(&self.manager, shown.get("ControlGroup")).await;
        if let Some(main) = shown.main_pid().filter(|main| !pids.contains(main)) {
            pids.push(main);
        }
        Ok(pids)
    }
}

#[async_trait]
impl Service for Systemd {
    fn name(&self) -> String {
        self.inner.settings.unit.clone()
    }

    fn log_name(&self) -> Option<String> {
        let scope = if self.inner.settings.user {
            "--user-unit"
        } else {
            "--unit"
        };
        Some(format!("journalctl {scope} {}", self.inner.settings.unit))
    }

    async fn status(&self) -> Result<Status, ServiceError> {
        self.inner.status().await
    }

    async fn how_it_ended(&self) -> Option<String> {
        self.inner.manager.show().await.ok()?.result()
    }

    async fn standing(&self) -> Result<Standing, ServiceError> {
        self.inner.standing().await
    }

    async fn validate(&self, config: &Config) -> Result<(), ServiceError> {
        self.inner.validate(config).await
    }

    async fn written_in(&self) -> Result<Option<String>, ServiceError> {
        self.inner.written_in().await.map(Some)
    }

    async fn start(&self, config: &Config) -> Result<ProcessId, ServiceError> {
        let config = config.clone();
        self.to_its_end(|inner| async move { inner.start(&config).await })
            .await
    }

    async fn stop(&self) -> Result<(), ServiceError> {
        self.to_its_end(|inner| async move { inner.stop().await })
            .await
    }

    async fn discard_trial(&self) -> Result<(), ServiceError> {
        self.to_its_end(|inner| async move { inner.discard().await })
            .await
    }

    async fn settle(&self) -> Result<Vec<String>, ServiceError> {
        fallen::bring_back(&self.inner.manager, &self.inner.settings.state_dir).await
    }

    async fn confirm(&self, config: &Config) -> Result<String, ServiceError> {
        let config = config.clone();
        self.to_its_end(|inner| async move { inner.confirm(&config).await })
            .await
    }

    async fn arm(&self, deadline: &Deadline) -> Result<(), ServiceError> {
        let deadline = deadline.clone();
        self.to_its_end(|inner| async move { inner.deadline().arm(&deadline).await })
            .await
    }

    async fn may_arm(&self) -> Result<(), ServiceError> {
        self.inner.deadline().possible().await
    }

    async fn disarm(&self) -> Result<(), ServiceError> {
        self.to_its_end(|inner| async move { inner.deadline().disarm().await })
            .await
    }

    async fn log_end(&self) -> Result<u64, ServiceError> {
        let mut journal = self.inner.journal.lock().await;
        journal.end(&self.inner.manager).await
    }

    async fn log_past(&self) -> Result<u64, ServiceError> {
        let mut journal = self.inner.journal.lock().await;
        journal.past(&self.inner.manager).await
    }

    async fn log_since(&self, from: u64) -> Result<(Vec<String>, u64), ServiceError> {
        let over = !self.inner.runs.load(Ordering::Relaxed);
        let mut journal = self.inner.journal.lock().await;
        journal.since(&self.inner.manager, from, over).await
    }

    async fn pids(&self) -> Result<Vec<u32>, ServiceError> {
        self.inner.pids().await
    }

    async fn port(&self) -> Result<Port, ServiceError> {
        self.inner.port().await
    }
}
