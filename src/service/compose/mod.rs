//! The service `compose`: a service of a compose project, by `docker compose`, `docker-compose` or `podman-compose`, over a host.
//!
//! A trial is an override file that is added last to the project's effective list of files; the files themselves stay as they are, so that
//! whoever calls compose without it gets the production value. A confirmation edits the number where it is written and takes the override
//! away. What runs is read from the container, what compose would bring from compose.

mod confirm;
mod container;
mod dependents;
mod logs;
mod project;
mod running;
mod sources;
mod tool;
mod trial;
mod work;

use crate::host::Host;
use crate::launch::Dialect;
use crate::profile::Launch;
use crate::service::{Config, Port, ProcessId, Service, ServiceError, Standing, Status};
use async_trait::async_trait;
use container::Container;
use logs::Logs;
use project::Project;
use sources::Sources;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tool::Tool;

/// Which service, and how compose is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `docker compose`, `docker-compose`, `podman-compose`, with options of their own where needed.
    pub command: Vec<String>,
    /// As the compose file names it.
    pub service: String,
    /// The project's name; `None`: of its container, else as compose names it.
    pub project: Option<String>,
    /// The project's folder; `None`: that of its container.
    pub directory: Option<PathBuf>,
    /// Its files, from the folder; empty: those of its container, else those that compose finds.
    pub files: Vec<PathBuf>,
    /// Where record, intent and lock lie, on the host.
    pub state_dir: PathBuf,
    /// The address that the server serves at.
    pub url: String,
    /// What the service starts, where its command does not tell.
    pub engine: Option<Dialect>,
    /// How long the server may take to end by itself before it is killed; `None`: as long as its container says.
    pub stop_grace: Option<Duration>,
}

/// A server that compose runs.
#[derive(Clone)]
pub struct Compose {
    inner: Arc<Inner>,
}

struct Inner {
    tool: Tool,
    settings: Settings,
    logs: Mutex<Logs>,
    /// The container at the last look, and whether it ran.
    seen: Mutex<Option<Container>>,
    /// The launch with its place for the context, as it was read last.
    launch: Mutex<Option<Launch>>,
    /// A start that is not proven yet: another one of the same container, by its restart policy, is a crash.
    watched: Mutex<Option<Watched>>,
    /// A start or stop goes on when nobody waits for it any more: the next one waits for its end.
    acting: Mutex<()>,
}

struct Watched {
    id: String,
    restarts: u64,
}

impl Compose {
    /// A service on `host`. Touches nothing.
    pub fn new(host: Arc<dyn Host>, settings: Settings) -> Compose {
        Compose {
            inner: Arc::new(Inner {
                tool: Tool {
                    host,
                    command: settings.command.clone(),
                },
                settings,
                logs: Mutex::default(),
                seen: Mutex::default(),
                launch: Mutex::default(),
                watched: Mutex::default(),
                acting: Mutex::new(()),
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
                tried: format!("look after {}", self.inner.name()),
                what: error.to_string(),
                advice: "Try again; the log of vramp may say more".to_string(),
            })
        })
    }
}

impl Inner {
    fn name(&self) -> String {
        format!("compose {}", self.settings.service)
    }

    /// The service's container, stopped or not.
    async fn container(&self) -> Result<Option<Container>, ServiceError> {
        let mut labels = vec![("service", self.settings.service.as_str())];
        if let Some(project) = &self.settings.project {
            labels.push(("project", project));
        }
        let folder = match &self.settings.directory {
            Some(folder) if self.settings.project.is_none() => {
                Some(self.tool.host.absolute(folder).await?)
            }
            _ => None,
        };
        let mut all = container::list(&self.tool, &labels).await?;
        if let Some(folder) = folder
            && !all.is_empty()
        {
            let here = |one: &Container| same_folder(&one.directory, &folder);
            if all.iter().any(here) {
                all.retain(here);
            } else {
                // It may have been made from another folder, by the project's name.
                let name = self.project(None).await?.name;
                all.retain(|one| one.project == name);
            }
        }
        if all.len() > 1 {
            let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
            return Err(project::failed(
                &self.settings,
                format!("it has several containers: {}", names.join(", ")),
                "Name the project in the profile (project = \"NAME\"), and run the service without copies",
            ));
        }
        let one = all.pop();
        self.seen.lock().await.clone_from(&one);
        Ok(one)
    }

    async fn project(&self, container: Option<&Container>) -> Result<Project, ServiceError> {
        Project::find(&self.tool, &self.settings, container).await
    }

    /// The project's files without any trial.
    async fn sources(&self, container: Option<&Container>) -> Result<Sources, ServiceError> {
        let project = self.project(container).await?;
        let sources = Sources::read(&self.tool, &self.settings, project).await?;
        *self.launch.lock().await = Some(sources.started.launch.clone());
        Ok(sources)
    }

    async fn status(&self) -> Result<Status, ServiceError> {
        let Some(container) = self.container().await? else {
            return Ok(Status::Stopped { exit: None });
        };
        if self.crashed(&container).await {
            return Ok(Status::Stopped {
                exit: self.last_exit(&container).await,
            });
        }
        if !container.runs() {
            return Ok(Status::Stopped {
                exit: Some(container.ended()),
            });
        }
        let known = self.launch.lock().await.clone();
        let launch = match known {
            Some(launch) => Some(launch),
            None => {
                let sources = self.sources(Some(&container)).await;
                sources.ok().map(|sources| sources.started.launch)
            }
        };
        let config = launch.and_then(|launch| {
            let context = running::own_context(&self.settings, &container, launch.slots)?;
            Some(Config { context, launch })
        });
        Ok(Status::Running {
            id: self.identify(&container).await?,
            config,
            started_unix_ms: container
                .started_at
                .parse::<jiff::Timestamp>()
                .map_or(0, |at| at.as_millisecond()),
        })
    }

    async fn standing(&self) -> Result<Standing, ServiceError> {
        let container = self.container().await?;
        let sources = self.sources(container.as_ref()).await?;
        let production = sources.started.context;
        let mut notes = sources.notes(&self.settings);
        let tried = trial::present(&self.tool, &self.settings, &sources.project).await?;
        if tried.is_none()
            && let Some(one) = &container
            && one.hash.is_some()
            && let Some(sum) = self.sum(&sources.project).await
            && Some(sum) != one.hash
        {
            notes.push(format!(
                "the project's files are not those that the container {} was made of: a restart brings what has changed in them, too",
                one.name
            ));
        }
        Ok(Standing {
            trial_note: self.trial_note(container.as_ref(), production),
            launch: sources.started.launch,
            production: Some(production),
            deadline_unix_ms: None,
            launch_fixed: Some(format!(
                "this command stands in {}: vramp changes its context alone; edit the file by hand for the rest, then attach again",
                sources
                    .project
                    .files
                    .iter()
                    .map(|file| file.display().to_string())
                    .collect::<Vec<_>>()
                    .join(", ")
            )),
            notes,
        })
    }

    /// The container whose log is read: the one seen last, so that following it asks nobody.
    async fn logged(&self) -> Result<Option<Container>, ServiceError> {
        if let Some(seen) = self.seen.lock().await.clone() {
            return Ok(Some(seen));
        }
        self.container().await
    }
}

/// Folders are as compose was told: with a slash at the end, through a link.
fn same_folder(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    one.components().eq(other.components()) || real(one).is_some_and(|one| Some(one) == real(other))
}

#[async_trait]
impl Service for Compose {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn log_name(&self) -> Option<String> {
        let engine = self.inner.tool.engine().join(" ");
        Some(format!("{engine} logs {}", self.inner.settings.service))
    }

    async fn status(&self) -> Result<Status, ServiceError> {
        self.inner.status().await
    }

    /// The engine tells one end from the others.
    async fn how_it_ended(&self) -> Option<String> {
        let container = self.inner.container().await.ok()??;
        let killed = !container.running && container.out_of_memory;
        killed.then(|| "oom-kill".to_string())
    }

    async fn standing(&self) -> Result<Standing, ServiceError> {
        self.inner.standing().await
    }

    async fn validate(&self, config: &Config) -> Result<(), ServiceError> {
        self.inner.validate(config).await
    }

    async fn written_in(&self) -> Result<Option<String>, ServiceError> {
        let container = self.inner.container().await?;
        let sources = self.inner.sources(container.as_ref()).await?;
        let edit = sources.edit(&self.inner.settings, sources.started.context)?;
        let path = sources.path(&edit);
        Ok(Some(format!("{} line {}", path.display(), edit.line)))
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
        self.to_its_end(|inner| async move {
            *inner.watched.lock().await = None;
            let container = inner.container().await?;
            let project = inner.project(container.as_ref()).await?;
            dependents::bring_back(&inner.tool, &inner.settings, &project).await
        })
        .await
    }

    async fn confirm(&self, config: &Config) -> Result<String, ServiceError> {
        let config = config.clone();
        self.to_its_end(|inner| async move { inner.confirm(&config).await })
            .await
    }

    async fn log_end(&self) -> Result<u64, ServiceError> {
        let Some(container) = self.inner.logged().await? else {
            return Ok(0);
        };
        let mut logs = self.inner.logs.lock().await;
        logs.end(&self.inner.tool, &container.id).await
    }

    async fn log_past(&self) -> Result<u64, ServiceError> {
        let Some(container) = self.inner.logged().await? else {
            return Ok(0);
        };
        let mut logs = self.inner.logs.lock().await;
        logs.past(&self.inner.tool, &container.id).await
    }

    async fn log_since(&self, from: u64) -> Result<(Vec<String>, u64), ServiceError> {
        let Some(container) = self.inner.logged().await? else {
            return Ok((Vec::new(), from));
        };
        let mut logs = self.inner.logs.lock().await;
        logs.since(&self.inner.tool, &container, from).await
    }

    async fn pids(&self) -> Result<Vec<u32>, ServiceError> {
        self.inner.pids().await
    }

    async fn port(&self) -> Result<Port, ServiceError> {
        self.inner.port().await
    }
}
