//! Keeping a trial: the number is changed where it is written, and compose is proven to leave the running container as it is.

use super::Inner;
use super::container::Container;
use super::project::Project;
use super::sources::{self, Sources};
use super::tool::ASKS;
use super::trial;
use crate::service::{Config, ServiceError};
use crate::units::thousands;

impl Inner {
    /// Makes the running `config` what a reboot brings. On failure every file is as it was, and the trial goes on.
    pub(super) async fn confirm(&self, config: &Config) -> Result<String, ServiceError> {
        let context = config.context;
        let runs = self.container().await?.filter(Container::runs);
        let container = runs.ok_or_else(|| {
            self.not_kept(context, "the server does not run", "Start it again first")
        })?;
        let sources = self.sources(Some(&container)).await?;
        let project = &sources.project;
        let own = self.context_of(&container, &sources);
        if own != Some(context) {
            let what = match own {
                Some(own) => format!("the running container has {}", thousands(own)),
                None => "what the running container has cannot be read".to_string(),
            };
            return Err(self.not_kept(context, what, "Attach again and look"));
        }
        if sources.started.context == context {
            trial::remove(&self.tool, &self.settings, project).await?;
            return Ok("it stands in the project's files already".to_string());
        }
        // Whether compose's sums can be compared at all is seen by the trial, which has brought this container.
        let comparable = match trial::present(&self.tool, &self.settings, project).await? {
            Some(tried) => self.sum(&tried).await == container.hash,
            None => false,
        };
        let edit = sources.edit(&self.settings, context)?;
        let path = sources.path(&edit);
        let before = self.tool.host.read(&path).await?.unwrap_or_default();
        let backup = self.tool.host.backup(&path).await?;
        self.tool.host.write(&path, &edit.bytes).await?;
        let proof = match self
            .prove_kept(&sources, &container, context, comparable)
            .await
        {
            Ok(proof) => proof,
            Err(error) => {
                self.tool.host.write(&path, &before).await?;
                return Err(error);
            }
        };
        trial::remove(&self.tool, &self.settings, project).await?;
        Ok(format!(
            "{} line {}: {} is {} now (before: {}); {proof}",
            path.display(),
            edit.line,
            edit.old,
            edit.new,
            backup.display()
        ))
    }

    /// Without the trial compose brings `context`, and nothing else than what runs.
    async fn prove_kept(
        &self,
        sources: &Sources,
        container: &Container,
        context: u64,
        comparable: bool,
    ) -> Result<String, ServiceError> {
        let resolved = sources::resolve(&self.tool, &self.settings, &sources.project).await?;
        let brings = sources::started(&self.settings, &resolved)?.context;
        let back = "The files are as they were, and the trial goes on";
        if brings != context {
            let what = format!(
                "after the edit compose would start it with {}",
                thousands(brings)
            );
            return Err(self.not_kept(context, what, back));
        }
        let sum = self.sum(&sources.project).await;
        if sum.is_some() && sum == container.hash {
            return Ok(format!(
                "compose up leaves the container {} as it is",
                container.name
            ));
        }
        if comparable {
            let what = "after the edit compose would make another container than the one that runs";
            return Err(self.not_kept(context, what, back));
        }
        Ok("whether compose up leaves the container as it is could not be proven: the next one may make it anew, with the same number".to_string())
    }

    /// What compose makes of the service's configuration, as its label on a container says it; `None` where it does not tell.
    pub(super) async fn sum(&self, project: &Project) -> Option<String> {
        if self.tool.is_podman_compose() {
            return None;
        }
        let service = self.settings.service.as_str();
        let asked = ["config", "--hash", service];
        let printed = self.tool.compose(project, &asked, ASKS).await;
        let text = String::from_utf8_lossy(&printed.ok()?).into_owned();
        text.lines()
            .filter_map(|line| line.trim().rsplit_once(char::is_whitespace))
            .find(|(name, _)| name.trim() == service)
            .map(|(_, sum)| sum.to_string())
    }

    fn not_kept(&self, context: u64, what: impl ToString, advice: &str) -> ServiceError {
        ServiceError::Failed {
            tried: format!("keep {} in {}", thousands(context), self.name()),
            what: what.to_string(),
            advice: advice.to_string(),
        }
    }

    /// Takes the trial away; what runs goes on.
    pub(super) async fn discard(&self) -> Result<(), ServiceError> {
        let container = self.container().await?;
        let project = self.project(container.as_ref()).await?;
        trial::remove(&self.tool, &self.settings, &project).await
    }
}
