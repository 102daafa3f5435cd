//! Starting and stopping the service's container, with and without a trial.

use super::container::{self, Container};
use super::project::Project;
use super::sources::Sources;
use super::tool::BRINGS_UP;
use super::{Inner, Watched, dependents, trial};
use crate::launch;
use crate::service::{Config, ProcessId, ServiceError};
use crate::units::thousands;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often the engine is asked how far it is.
const LOOK: Duration = Duration::from_millis(200);
/// How long the engine may take beyond the time that it gives the container: a process in the middle of a driver call ends late.
const KILL_TAKES: Duration = Duration::from_secs(30);

impl Inner {
    fn failed(&self, tried: &str, what: impl ToString, advice: &str) -> ServiceError {
        ServiceError::Failed {
            tried: format!("{tried} {}", self.name()),
            what: what.to_string(),
            advice: advice.to_string(),
        }
    }

    /// All that a start at `config` needs, without changing what runs. Compose itself reads the files, also with the trial.
    pub(super) async fn validate(&self, config: &Config) -> Result<(), ServiceError> {
        let container = self.container().await?;
        let sources = self.sources(container.as_ref()).await?;
        self.is_alone(&sources).await?;
        if config.launch != sources.started.launch {
            return Err(self.failed(
                "change the command of",
                "another launch than the one in its files was asked for",
                "vramp changes the context alone; edit the compose file by hand for the rest, and attach again",
            ));
        }
        if sources.started.context == config.context {
            return Ok(());
        }
        let edit = sources.edit(&self.settings, config.context)?;
        let over = trial::place(&sources.project, &self.settings);
        for path in [over.as_path(), sources.path(&edit).as_path()] {
            self.may_write(path).await?;
        }
        let check = self.settings.state_dir.join("trial-check.yaml");
        self.tool.host.make_dir(&self.settings.state_dir).await?;
        let text = trial::text(&sources, &self.settings, config.context)?;
        self.tool.host.write(&check, &text).await?;
        let tried = sources.project.with(&check);
        let proven = trial::prove(&self.tool, &self.settings, &tried, config.context).await;
        self.tool.host.remove(&check).await?;
        proven
    }

    /// podman-compose takes a whole project down where one of its services changed.
    async fn is_alone(&self, sources: &Sources) -> Result<(), ServiceError> {
        if !self.tool.is_podman_compose() {
            return Ok(());
        }
        let project = sources.project.name.as_str();
        let all = container::list(&self.tool, &[("project", project)]).await?;
        let others: Vec<&str> = all
            .iter()
            .filter(|one| one.running && one.service != self.settings.service)
            .map(|one| one.service.as_str())
            .collect();
        if others.is_empty() {
            return Ok(());
        }
        Err(self.failed(
            "restart",
            format!(
                "podman-compose would take the whole project down, with {}",
                others.join(", ")
            ),
            "Give the server a project of its own, or let docker compose run it (podman has docker's interface)",
        ))
    }

    /// Checks that a file could be written there, without writing it.
    async fn may_write(&self, path: &Path) -> Result<(), ServiceError> {
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let there = self.tool.host.stat(path).await?.is_some();
        let looked: Vec<PathBuf> = match there {
            true => vec![folder, path.to_path_buf()],
            false => vec![folder],
        };
        for place in looked {
            let name = place.to_string_lossy().into_owned();
            let test: Vec<String> = ["test", "-w", &name].map(str::to_string).to_vec();
            if self.tool.host.run(&test).await?.code != Some(0) {
                return Err(self.failed(
                    "change the context of",
                    format!("{name} is not writable for this user"),
                    "Run vramp as a user who may write there, or put sudo = true into the service of the profile",
                ));
            }
        }
        Ok(())
    }

    pub(super) async fn start(&self, config: &Config) -> Result<ProcessId, ServiceError> {
        let old = self.container().await?;
        if old.as_ref().is_some_and(|one| one.running) {
            return Err(self.failed("start", "it runs already", "Stop it first"));
        }
        let sources = self.sources(old.as_ref()).await?;
        self.is_alone(&sources).await?;
        trial::remove(&self.tool, &self.settings, &sources.project).await?;
        let project = if sources.started.context == config.context {
            sources.project.clone()
        } else {
            self.write_trial(&sources, config.context).await?
        };
        let service = self.settings.service.as_str();
        let up = ["up", "-d", "--no-deps", "--no-build", service];
        self.tool.compose(&project, &up, BRINGS_UP).await?;
        let new = self.container().await?.ok_or_else(|| {
            self.failed(
                "start",
                "compose says that it is up, and there is no container of it",
                "See: docker compose ps",
            )
        })?;
        if !new.error.is_empty() && !new.running {
            return Err(self.failed("start", &new.error, "See: docker compose ps"));
        }
        let same = old.is_some_and(|old| old.id == new.id);
        *self.watched.lock().await = Some(Watched {
            id: new.id.clone(),
            restarts: if same { new.restarts } else { 0 },
        });
        self.identify(&new).await
    }

    /// Writes the trial of `context`, and gives the project with it. Where merging one more file changes more than the number (the first
    /// version of compose sorts volumes and ports then), an edited copy takes the place of the file instead: only so is the container the
    /// one that the kept value brings.
    async fn write_trial(&self, sources: &Sources, context: u64) -> Result<Project, ServiceError> {
        let project = &sources.project;
        let check = self.settings.state_dir.join("merge-check.yaml");
        let nothing = trial::nothing(&self.settings);
        self.tool.host.make_dir(&self.settings.state_dir).await?;
        self.tool.host.write(&check, &nothing).await?;
        let neutral = self.sum(project).await == self.sum(&project.with(&check)).await;
        self.tool.host.remove(&check).await?;
        let (path, text) = if neutral {
            let text = trial::text(sources, &self.settings, context)?;
            (trial::place(project, &self.settings), text)
        } else {
            let edit = sources.edit(&self.settings, context)?;
            let path = trial::instead_of(&sources.path(&edit), &self.settings.service);
            (path, edit.bytes)
        };
        self.tool.host.write(&path, &text).await?;
        let tried = project.with(&path);
        trial::prove(&self.tool, &self.settings, &tried, context).await?;
        Ok(tried)
    }

    /// Stops the container, also one that its restart policy brings up again and again, and waits until it does not run.
    pub(super) async fn stop(&self) -> Result<(), ServiceError> {
        let Some(container) = self.container().await? else {
            return Ok(());
        };
        self.record_dependents(&container).await;
        let grace = match self.settings.stop_grace {
            Some(grace) => grace,
            None => Duration::from_secs(container.stop_timeout),
        };
        let seconds = grace.as_secs().to_string();
        let mut stop = vec!["stop"];
        if self.settings.stop_grace.is_some() {
            stop.extend(["--time", seconds.as_str()]);
        }
        stop.push(&container.id);
        let limit = grace + KILL_TAKES;
        if container.running || container.restarting {
            self.tool.engine_run(&stop, limit).await?;
        }
        let until = Instant::now() + KILL_TAKES;
        loop {
            let now = self.container().await?;
            if now.is_none_or(|one| !one.running && !one.restarting) {
                return Ok(());
            }
            if Instant::now() >= until {
                let pids = self.pids().await.unwrap_or_default();
                return Err(self.failed(
                    "stop",
                    format!(
                        "it still runs {} s after its stop; processes {pids:?}",
                        KILL_TAKES.as_secs()
                    ),
                    "A process in state D waits for the kernel or the driver: look at dmesg",
                ));
            }
            sleep(LOOK).await;
        }
    }

    /// Files that cannot be read now are no reason to leave a server running that is to be stopped: validation has read them before.
    async fn record_dependents(&self, container: &Container) {
        let recorded = async {
            let sources = self.sources(Some(container)).await?;
            let needing = launch::compose_dependents(&sources.resolved, &self.settings.service);
            let project = container.project.as_str();
            dependents::record(&self.tool, &self.settings, project, &needing).await
        };
        if let Err(error) = recorded.await {
            tracing::warn!("what depends on {} is not on record: {error}", self.name());
        }
    }

    /// What a reboot does to a trial, in words.
    pub(super) fn trial_note(&self, container: Option<&Container>, production: u64) -> String {
        let number = thousands(production);
        let name = self.name();
        match container {
            Some(one) if one.comes_back() => format!(
                "restart: {} brings the trial's own container back after a reboot, until it is kept or rolled back; compose up brings the production value {number}",
                one.policy
            ),
            _ => format!(
                "a reboot starts nothing of {name} (no restart policy); compose up brings the production value {number}"
            ),
        }
    }
}
