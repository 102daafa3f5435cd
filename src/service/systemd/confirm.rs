//! The confirmation: the number is edited where it lives, the trial goes, and a start is proven to bring what runs.

use super::Inner;
use super::manager::Shown;
use super::{running, trial};
use crate::launch::Edit;
use crate::service::started::Started;
use crate::service::{Config, ServiceError};
use crate::units::thousands;
use std::path::{Path, PathBuf};

/// A file that was changed, and what it was before.
struct Changed {
    path: PathBuf,
    before: Option<Vec<u8>>,
    words: String,
}

impl Inner {
    /// Makes the running `config` what a reboot brings. On failure every file is as it was, and the trial goes on.
    pub(super) async fn confirm(&self, config: &Config) -> Result<String, ServiceError> {
        let context = config.context;
        self.manager.reload().await?;
        let shown = self.manager.show().await?;
        let pid = shown.main_pid().ok_or_else(|| {
            self.not_kept(context, "the server does not run", "Start it again first")
        })?;
        let runs = self.config(&shown, pid).await.map(|config| config.context);
        if runs != Some(context) {
            let what = match runs {
                Some(runs) => format!("the running process has {}", thousands(runs)),
                None => "what the running process has cannot be read".to_string(),
            };
            return Err(self.not_kept(context, what, "Attach again and look"));
        }
        // Before anything is written: too late is too late.
        self.deadline().still_open().await?;
        let production = self.production(&shown).await?;
        if production.started()?.context == context {
            self.discard().await?;
            self.deadline().disarm().await?;
            return Ok("it stands in the unit already".to_string());
        }
        let edit = production.edit(context)?;
        let expected = production.after(&edit)?;
        let changed = self.write(&shown, &edit, context).await?;
        match self.prove(&expected, context, pid).await {
            Ok(proof) => {
                // Until here a failure leaves the trial with its deadline. What the deadline brings back is the kept value by now.
                let left = self.deadline().disarm().await.err();
                let left = left.map_or(String::new(), |error| format!("; {error}"));
                Ok(format!("{}; {proof}{left}", changed.words))
            }
            Err(error) => {
                self.undo(&changed, context).await?;
                Err(error)
            }
        }
    }

    fn not_kept(&self, context: u64, what: impl ToString, advice: &str) -> ServiceError {
        ServiceError::Failed {
            tried: format!("keep {} in {}", thousands(context), self.settings.unit),
            what: what.to_string(),
            advice: advice.to_string(),
        }
    }

    /// Edits the file, or lays a lasting drop-in over one that is not ours to edit.
    async fn write(
        &self,
        shown: &Shown,
        edit: &Edit,
        context: u64,
    ) -> Result<Changed, ServiceError> {
        let id = self.id(shown);
        let folders = self.manager.folders().await?;
        let path = PathBuf::from(&edit.file);
        let files = self.production(shown).await?;
        if files.editable(edit, &folders) {
            let before = self.manager.read(&path).await?;
            let backup = self.manager.backup(&path).await?;
            self.manager.write(&path, &edit.bytes).await?;
            return Ok(Changed {
                words: format!(
                    "{} line {}: {} is {} now (before: {})",
                    path.display(),
                    edit.line,
                    edit.old,
                    edit.new,
                    backup.display()
                ),
                path,
                before,
            });
        }
        let over = files.override_with(edit)?;
        let drop_in = trial::lasting_place(&folders, id);
        let before = self.manager.read(&drop_in).await?;
        let comment = format!(
            "Written by vramp: {} tokens a request, over {}.",
            thousands(context),
            path.display()
        );
        trial::write(&self.manager, &drop_in, &over, &comment).await?;
        Ok(Changed {
            words: format!(
                "{} lies over {}, which is not edited",
                drop_in.display(),
                path.display()
            ),
            path: drop_in,
            before,
        })
    }

    /// Without the trial, a start brings `expected`, and that is what runs.
    async fn prove(
        &self,
        expected: &Started,
        context: u64,
        pid: u32,
    ) -> Result<String, ServiceError> {
        self.discard().await?;
        self.manager.reload().await?;
        let shown = self.manager.show().await?;
        let brings = self.production(&shown).await?.started()?;
        if brings.context != context || brings.argv != expected.argv {
            return Err(self.not_kept(
                context,
                format!(
                    "after the edit a start would bring {}: {}",
                    thousands(brings.context),
                    brings.launch.argv.join(" ")
                ),
                "The files are as they were, and the trial goes on; see: systemctl cat",
            ));
        }
        let Some(command) = running::command(&self.manager, pid).await else {
            return Ok("what runs could not be compared: the process may not be looked at".into());
        };
        if command.is(&brings.argv) {
            return Ok(format!("a start brings the very command of pid {pid}"));
        }
        match command.context(self.settings.engine) {
            Some(own) if own != context => Err(self.not_kept(
                context,
                format!("pid {pid} itself has {}", thousands(own)),
                "The files are as they were, and the trial goes on",
            )),
            Some(_) => Ok(format!("a start brings the context of pid {pid}")),
            None => Ok(format!(
                "pid {pid} does not show its arguments, so the files alone were compared"
            )),
        }
    }

    /// Puts the old text and the trial back.
    async fn undo(&self, changed: &Changed, context: u64) -> Result<(), ServiceError> {
        self.put_back(&changed.path, changed.before.as_deref())
            .await?;
        self.manager.reload().await?;
        let shown = self.manager.show().await?;
        let folders = self.manager.folders().await?;
        let files = self.production(&shown).await?;
        if files.started()?.context != context {
            self.write_trial(&shown, &folders, &files, context).await?;
        }
        Ok(())
    }

    async fn put_back(&self, path: &Path, before: Option<&[u8]>) -> Result<(), ServiceError> {
        match before {
            Some(bytes) => self.manager.write(path, bytes).await,
            None => trial::remove(&self.manager, path).await,
        }
    }
}
