//! Starting and stopping a unit, with and without a trial.

use super::Inner;
use super::files::{self, Files};
use super::manager::{Folders, Shown};
use super::{fallen, running, trial};
use crate::service::{Config, ProcessId, ServiceError};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often the manager is asked how far it is.
const LOOK: Duration = Duration::from_millis(100);
/// How long the main process may take to be there; what runs before it (`ExecStartPre=`) has its own time.
const APPEARS: Duration = Duration::from_secs(20);
/// A stop for which the unit sets no limit.
const STOP_GRACE: Duration = Duration::from_secs(90);
/// How long the kernel may take to end what was killed: a process in the middle of a driver call ends late.
const KILL_TAKES: Duration = Duration::from_secs(30);

impl Inner {
    fn unit(&self) -> &str {
        &self.settings.unit
    }

    fn failed(&self, tried: &str, what: impl ToString, advice: &str) -> ServiceError {
        ServiceError::Failed {
            tried: format!("{tried} {}", self.unit()),
            what: what.to_string(),
            advice: advice.to_string(),
        }
    }

    /// The name by which the manager has the unit's files: an alias has none of its own.
    pub(super) fn id<'a>(&'a self, shown: &'a Shown) -> &'a str {
        Some(shown.get("Id"))
            .filter(|id| !id.is_empty())
            .unwrap_or(self.unit())
    }

    /// The files without any trial: what a reboot brings.
    pub(super) async fn production(&self, shown: &Shown) -> Result<Files, ServiceError> {
        let folders = self.manager.folders().await?;
        let trials = trial::of(shown, &folders, self.id(shown));
        let paths: Vec<PathBuf> = files::paths(shown)
            .into_iter()
            .filter(|path| !trials.contains(path))
            .collect();
        Files::read(&self.manager, self.id(shown), &paths, self.settings.engine).await
    }

    /// The files as they lie, with a trial.
    async fn present(&self, shown: &Shown) -> Result<Files, ServiceError> {
        let paths = files::paths(shown);
        Files::read(&self.manager, self.id(shown), &paths, self.settings.engine).await
    }

    /// What the running process was started with: its own word, else what its files say.
    pub(super) async fn config(&self, shown: &Shown, pid: u32) -> Option<Config> {
        let production = self.production(shown).await.ok()?.started().ok()?;
        let own = match running::command(&self.manager, pid).await {
            Some(command) => command.context(self.settings.engine).or_else(|| {
                let name = production.variable.as_ref()?;
                let env = command.env.as_ref()?;
                let value = env.iter().find(|(n, _)| n == name)?.1.parse::<u64>().ok()?;
                value.checked_div(production.launch.slots.max(1))
            }),
            None => None,
        };
        let context = match own {
            Some(context) => context,
            None => self.present(shown).await.ok()?.started().ok()?.context,
        };
        Some(Config {
            context,
            launch: production.launch,
        })
    }

    /// All that a start at `config` needs, without changing what runs. The manager reads its files anew: a right to do that is a right
    /// to do the rest.
    pub(super) async fn validate(&self, config: &Config) -> Result<(), ServiceError> {
        self.manager.reload().await?;
        let shown = self.manager.show().await?;
        let folders = self.manager.folders().await?;
        let files = self.production(&shown).await?;
        let production = files.started()?;
        if config.launch != production.launch {
            return Err(self.failed(
                "change the command of",
                "another launch than the one in its files was asked for",
                "vramp changes the context alone; edit the unit by hand for the rest, and attach again",
            ));
        }
        if production.context == config.context {
            return Ok(());
        }
        let edit = files.edit(config.context)?;
        files.override_with(&edit)?;
        let path = trial::place(&shown, &folders, self.id(&shown))?;
        self.manager.may_write(&path).await?;
        let target = if files.editable(&edit, &folders) {
            PathBuf::from(&edit.file)
        } else {
            trial::lasting_place(&folders, self.id(&shown))
        };
        self.manager.may_write(&target).await
    }

    /// The file and line of the number that a reboot brings.
    pub(super) async fn written_in(&self) -> Result<String, ServiceError> {
        let files = self.production(&self.manager.show().await?).await?;
        let edit = files.edit(files.started()?.context)?;
        Ok(format!("{} line {}", edit.file, edit.line))
    }

    pub(super) async fn start(&self, config: &Config) -> Result<ProcessId, ServiceError> {
        self.manager.reload().await?;
        let shown = self.manager.show().await?;
        if shown.main_pid().is_some() {
            return Err(self.failed("start", "it runs already", "Stop it first"));
        }
        let files = self.production(&shown).await?;
        let production = files.started()?;
        let folders = self.manager.folders().await?;
        if production.context == config.context {
            self.discard_in(&shown, &folders).await?;
        } else {
            self.write_trial(&shown, &folders, &files, config.context)
                .await?;
        }
        // Its failed starts of before count towards a limit of the manager's.
        self.manager
            .order(&["reset-failed", "--", self.unit()])
            .await
            .or_else(|error| match shown.get("ActiveState") {
                "failed" => Err(error),
                _ => Ok(()),
            })?;
        self.manager
            .order(&["start", "--no-block", "--", self.unit()])
            .await?;
        self.appeared(shown.get("InvocationID")).await
    }

    /// Writes the trial of `context` and proves that it is what a start brings.
    pub(super) async fn write_trial(
        &self,
        shown: &Shown,
        folders: &Folders,
        files: &Files,
        context: u64,
    ) -> Result<(), ServiceError> {
        let id = self.id(shown);
        let edit = files.edit(context)?;
        let path = trial::place(shown, folders, id)?;
        for old in trial::of(shown, folders, id) {
            if old != path {
                trial::remove(&self.manager, &old).await?;
            }
        }
        let over = files.override_with(&edit)?;
        trial::write(&self.manager, &path, &over, &trial::comment(context)).await?;
        self.manager.reload().await?;
        trial::prove_last(&self.manager, id, &path).await?;
        let brings = self.present(&self.manager.show().await?).await?.started()?;
        if brings.context == context {
            return Ok(());
        }
        Err(self.failed(
            "prove the trial of",
            format!(
                "with it a start would bring {} tokens, not {}",
                brings.context, context
            ),
            "See: systemctl cat",
        ))
    }

    /// Takes every trial away; what runs goes on.
    pub(super) async fn discard(&self) -> Result<(), ServiceError> {
        // One that was written and not read yet is listed after this.
        self.manager.reload().await?;
        let shown = self.manager.show().await?;
        let folders = self.manager.folders().await?;
        self.discard_in(&shown, &folders).await
    }

    async fn discard_in(&self, shown: &Shown, folders: &Folders) -> Result<(), ServiceError> {
        let trials = trial::of(shown, folders, self.id(shown));
        for path in &trials {
            trial::remove(&self.manager, path).await?;
        }
        if trials.is_empty() {
            return Ok(());
        }
        self.manager.reload().await
    }

    /// The main process of the start after the invocation `before`.
    async fn appeared(&self, before: &str) -> Result<ProcessId, ServiceError> {
        let mut until = Instant::now() + APPEARS;
        loop {
            let shown = self.manager.show().await?;
            let new = shown.get("InvocationID") != before;
            if new
                && let Some(pid) = shown.main_pid()
                && let Some(id) = running::identify(&self.manager, pid).await?
            {
                self.runs.store(true, std::sync::atomic::Ordering::Relaxed);
                return Ok(id);
            }
            let failed = shown.at_rest() && (new || shown.get("ActiveState") == "failed");
            if failed || shown.get("SubState") == "auto-restart" {
                let exit = shown
                    .exit()
                    .map_or(String::new(), |exit| format!(", exit code {exit}"));
                return Err(self.failed(
                    "start",
                    format!("it ended at once ({}{exit})", shown.get("Result")),
                    "Its journal says more",
                ));
            }
            if shown.get("SubState") == "start-pre" {
                until = Instant::now() + APPEARS;
            }
            if Instant::now() >= until {
                return Err(self.failed(
                    "start",
                    format!(
                        "no main process after {} s, state {}",
                        APPEARS.as_secs(),
                        shown.get("SubState")
                    ),
                    "See: systemctl status",
                ));
            }
            sleep(LOOK).await;
        }
    }

    /// Stops the unit and waits until nothing of it is left.
    pub(super) async fn stop(&self) -> Result<(), ServiceError> {
        let shown = self.manager.show().await?;
        fallen::record(&self.manager, &self.settings.state_dir).await?;
        self.manager
            .order(&["stop", "--no-block", "--", self.unit()])
            .await?;
        let grace = self
            .settings
            .stop_grace
            .or_else(|| span(shown.get("TimeoutStopUSec")).map(|limit| limit * 2))
            .unwrap_or(STOP_GRACE);
        let begun = Instant::now();
        let mut killed = false;
        loop {
            let shown = self.manager.show().await?;
            if shown.at_rest() && shown.get("Job").is_empty() {
                self.runs.store(false, std::sync::atomic::Ordering::Relaxed);
                return Ok(());
            }
            let waited = begun.elapsed();
            if waited >= grace && !killed {
                killed = true;
                self.manager
                    .order(&["kill", "--signal=SIGKILL", "--", self.unit()])
                    .await?;
            }
            if waited >= grace + KILL_TAKES {
                let pids = running::members(&self.manager, shown.get("ControlGroup")).await;
                return Err(self.failed(
                    "stop",
                    format!(
                        "it is still {} {} s after SIGKILL; processes {pids:?}",
                        shown.get("SubState"),
                        KILL_TAKES.as_secs()
                    ),
                    "A process in state D waits for the kernel or the driver: look at dmesg",
                ));
            }
            sleep(LOOK).await;
        }
    }
}

/// A time span as systemd prints it: `1min 30s`, `500ms`; `None` for `infinity` and what is not understood.
fn span(text: &str) -> Option<Duration> {
    let mut whole = Duration::ZERO;
    for word in text.split_whitespace() {
        let digits = word.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = word.get(..digits)?.parse().ok()?;
        let seconds = match word.get(digits..)? {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        whole += Duration::try_from_secs_f64(number * seconds).ok()?;
    }
    (whole > Duration::ZERO).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_systemd_prints_them() {
        assert_eq!(span("1min 30s"), Some(Duration::from_secs(90)));
        assert_eq!(span("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(span("1h 2.5s"), Some(Duration::from_millis(3_602_500)));
        for text in ["infinity", "", "0", "1fortnight"] {
            assert_eq!(span(text), None, "{text}");
        }
    }
}
