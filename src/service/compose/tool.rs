//! The compose command and the container engine behind it, on a host.

use super::project::Project;
use crate::host::{Host, HostError, Output};
use crate::service::ServiceError;
use crate::units;
use std::sync::Arc;
use std::time::Duration;

/// How long a question to the engine may take.
pub const ASKS: Duration = Duration::from_secs(60);
/// How long compose may take to make and start a container: an image may have to be fetched first.
pub const BRINGS_UP: Duration = Duration::from_secs(900);

/// Runs a command in a folder; a fixed script, whose arguments are the folder and the command.
const IN_FOLDER: &str = r#"cd -- "$1" || exit 126; shift; exec "$@""#;

/// How compose is called.
#[derive(Clone)]
pub struct Tool {
    pub host: Arc<dyn Host>,
    /// `docker compose`, `docker-compose`, `podman-compose`.
    pub command: Vec<String>,
}

impl Tool {
    /// podman-compose knows fewer options, and recreates a whole project where one service changed.
    pub fn is_podman_compose(&self) -> bool {
        self.command
            .last()
            .is_some_and(|word| base(word) == "podman-compose")
    }

    /// The engine's own command: that of the plugin `compose`, else `docker` or `podman` in the place of the last word.
    pub fn engine(&self) -> Vec<String> {
        let mut words = self.command.clone();
        if let Some(last) = words.pop()
            && last != "compose"
        {
            let podman = base(&last).contains("podman");
            words.push(if podman { "podman" } else { "docker" }.to_string());
        }
        words
    }

    /// A command of the engine that must end well, and what it printed.
    pub async fn ask(&self, arguments: &[&str]) -> Result<Vec<u8>, ServiceError> {
        self.engine_run(arguments, ASKS).await
    }

    /// The same with a limit of its own.
    pub async fn engine_run(
        &self,
        arguments: &[&str],
        limit: Duration,
    ) -> Result<Vec<u8>, ServiceError> {
        let argv: Vec<String> = self
            .engine()
            .into_iter()
            .chain(arguments.iter().map(|word| word.to_string()))
            .collect();
        self.ended_well(&argv, &argv, limit).await
    }

    /// A command of compose on the project's files. It must end well; gives what it printed.
    pub async fn compose(
        &self,
        project: &Project,
        arguments: &[&str],
        limit: Duration,
    ) -> Result<Vec<u8>, ServiceError> {
        let mut words = self.command.clone();
        words.extend(["-p".to_string(), project.name.clone()]);
        if !self.is_podman_compose() {
            let folder = project.directory.to_string_lossy().into_owned();
            words.extend(["--project-directory".to_string(), folder]);
            if let Some(file) = &project.env_file {
                let file = file.to_string_lossy().into_owned();
                words.extend(["--env-file".to_string(), file]);
            }
        }
        for file in &project.files {
            words.extend(["-f".to_string(), file.to_string_lossy().into_owned()]);
        }
        words.extend(arguments.iter().map(|word| word.to_string()));
        let folder = project.directory.to_string_lossy().into_owned();
        let argv: Vec<String> = ["sh", "-c", IN_FOLDER, "vramp", &folder]
            .iter()
            .map(|word| word.to_string())
            .chain(words.iter().cloned())
            .collect();
        self.ended_well(&argv, &words, limit).await
    }

    async fn ended_well(
        &self,
        argv: &[String],
        shown: &[String],
        limit: Duration,
    ) -> Result<Vec<u8>, ServiceError> {
        let failed = |what: String| ServiceError::Failed {
            tried: format!("run {}", short(shown)),
            advice: self.advice(&what).to_string(),
            what,
        };
        let output = match tokio::time::timeout(limit, self.host.run(argv)).await {
            Ok(Err(error @ HostError::Lost { .. })) => return Err(error.into()),
            Ok(Err(error)) => return Err(failed(error.to_string())),
            Ok(Ok(output)) => output,
            Err(_) => {
                return Err(failed(format!(
                    "it did not end within {} s",
                    limit.as_secs()
                )));
            }
        };
        match output.code {
            Some(0) => Ok(output.stdout),
            _ => Err(failed(said(&output))),
        }
    }

    fn advice(&self, what: &str) -> &'static str {
        if what.contains("annot connect")
            || what.contains("Couldn't connect")
            || what.contains("fetching server API version")
        {
            "Start the container engine, or name the one meant: command = [\"docker\", \"--context\", \"NAME\", \"compose\"]"
        } else if what.contains("permission denied") || what.contains("Permission denied") {
            "Run vramp as a user who may use the engine (group docker), or put sudo = true into the service of the profile"
        } else if what.contains("password is required") || what.contains("not in the sudoers") {
            "sudo must work without a password here (NOPASSWD), or run vramp as root"
        } else if what.contains("No such file or directory")
            || what.contains("not found")
            || what.contains("unknown command")
            || what.contains("is not a docker command")
        {
            "Correct command in the profile: [\"docker\", \"compose\"], [\"docker-compose\"] or [\"podman-compose\"]"
        } else {
            "Run it by hand in the project's folder and see"
        }
    }
}

/// What a failed command said: the lines that tell, the last ones first in worth.
fn said(output: &Output) -> String {
    const LINES: usize = 4;
    let text = [output.stderr.as_slice(), b"\n", output.stdout.as_slice()].concat();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<String> = text
        .lines()
        .map(|line| units::clean(line).trim().to_string())
        .filter(|line| !line.is_empty())
        .collect();
    // Of a Python program that fell over the last line tells, the rest is its own.
    let fell = lines.iter().any(|line| line.starts_with("Traceback "));
    let skip = lines.len().saturating_sub(if fell { 1 } else { LINES });
    match (lines.get(skip..), output.code) {
        (Some([]) | None, Some(code)) => format!("it ended with exit code {code}"),
        (Some([]) | None, None) => "a signal ended it".to_string(),
        (Some(last), _) => last.join("; "),
    }
}

/// A command as an error names it.
fn short(argv: &[String]) -> String {
    let line = units::clean(&argv.join(" "));
    match line.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Local;

    #[test]
    fn the_engine_is_the_one_behind_the_command() {
        let engine = |command: &[&str]| {
            let command = command.iter().map(|word| word.to_string()).collect();
            let tool = Tool {
                host: Arc::new(Local),
                command,
            };
            tool.engine().join(" ")
        };
        assert_eq!(engine(&["docker", "compose"]), "docker");
        assert_eq!(
            engine(&["docker", "--context", "gpu", "compose"]),
            "docker --context gpu"
        );
        assert_eq!(engine(&["docker-compose"]), "docker");
        assert_eq!(engine(&["/usr/bin/podman-compose"]), "podman");
        assert_eq!(engine(&["sudo", "-n", "docker-compose"]), "sudo -n docker");
    }
}
