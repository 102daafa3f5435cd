//! The deadline of a trial: a transient timer that runs a script file, so that it works when the cockpit, the connection or the operator
//! is gone. (Shell text inside a transient unit does not survive a daemon-reload; a file named by an argument vector does.)

use super::fallen;
use super::manager::{Manager, words};
use crate::clock;
use crate::service::{Deadline, ServiceError};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const SCRIPT: &str = include_str!("deadline.sh");
const MIB: u64 = 1 << 20;
/// For so long it is news that a deadline has passed.
const NEWS_MS: i64 = 3_600_000;

/// What is on record of an armed deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    at_unix_ms: i64,
    /// Name of the timer and its service, without their endings.
    name: String,
}

/// How a deadline stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stands {
    None,
    /// Unix milliseconds.
    Armed(i64),
    /// It has passed, and the production value is on its way or there; the last of what the script says.
    Passed(String),
}

/// Where things lie and what the script needs to know.
pub struct Ground<'a> {
    pub manager: &'a Manager,
    pub state_dir: &'a Path,
    pub url: &'a str,
    pub release_s: u64,
}

impl Ground<'_> {
    fn record_path(&self) -> PathBuf {
        self.state_dir.join("deadline.json")
    }

    fn log_path(&self) -> PathBuf {
        self.state_dir.join("deadline.log")
    }

    /// The two names that are used in turn: the new timer is there before the old one goes.
    fn names(&self) -> [String; 2] {
        let unit = &self.manager.unit;
        let stem = unit.strip_suffix(".service").unwrap_or(unit);
        let safe: String = stem
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "-_.".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        ["a", "b"].map(|turn| format!("vramp-deadline-{turn}-{safe}"))
    }

    async fn record(&self) -> Result<Option<Record>, ServiceError> {
        let bytes = self.manager.host.read(&self.record_path()).await?;
        // What cannot be read is no promise; the timer itself is looked at when it is armed or disarmed.
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    async fn active(&self, unit: &str) -> Result<bool, ServiceError> {
        Ok(!self.manager.show_any(unit).await?.at_rest())
    }

    pub async fn stands(&self) -> Result<Stands, ServiceError> {
        let Some(record) = self.record().await? else {
            return Ok(Stands::None);
        };
        if self.active(&format!("{}.timer", record.name)).await? {
            return Ok(Stands::Armed(record.at_unix_ms));
        }
        if clock::unix_ms().saturating_sub(record.at_unix_ms) > NEWS_MS {
            return Ok(Stands::None);
        }
        let log = self.manager.host.read(&self.log_path()).await?;
        let text = String::from_utf8_lossy(&log.unwrap_or_default()).into_owned();
        match text.lines().last() {
            Some(line) => Ok(Stands::Passed(crate::units::clean(line))),
            None => Ok(Stands::None),
        }
    }

    /// Whether something outlives this program that could carry a deadline.
    pub async fn possible(&self) -> Result<(), ServiceError> {
        if !self.manager.user {
            return Ok(());
        }
        let host = &self.manager.host;
        let user = host.run(&words(&["id", "-un"])).await?;
        let user = String::from_utf8_lossy(&user.stdout).trim().to_string();
        let file = PathBuf::from("/var/lib/systemd/linger").join(&user);
        if host.stat(&file).await?.is_some() {
            return Ok(());
        }
        Err(ServiceError::Failed {
            tried: format!("give the trial of {} a deadline", self.manager.unit),
            what: format!(
                "{user}'s units end with the last session, and the timer with them: lingering is off"
            ),
            advice: format!("loginctl enable-linger {user}, or leave the deadline out"),
        })
    }

    pub async fn arm(&self, deadline: &Deadline) -> Result<(), ServiceError> {
        self.possible().await?;
        let manager = self.manager;
        // The trial lies under the unit's own name, which is not the one by which an alias is called.
        let shown = manager.show().await?;
        let id = Some(shown.get("Id")).filter(|id| !id.is_empty());
        let folder = manager
            .folders()
            .await?
            .runtime
            .join(format!("{}.d", id.unwrap_or(&manager.unit)));
        let script = folder.join("vramp-deadline.sh");
        let [a, b] = self.names();
        let (new, old) = if self.active(&format!("{a}.timer")).await? {
            (b, a)
        } else {
            (a, b)
        };
        self.not_passing(&new).await?;
        self.not_passing(&old).await?;
        let seconds = deadline.after.as_secs().max(1);
        manager.host.make_dir(self.state_dir).await?;
        manager.host.remove(&self.log_path()).await?;
        manager.write(&script, SCRIPT.as_bytes()).await?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let log = manager.host.absolute(&self.log_path()).await?;
        let mut argv = vec![
            "/bin/sh".to_string(),
            text(&script),
            if manager.user { "--user" } else { "--system" }.to_string(),
            manager.unit.clone(),
            text(&log),
            self.release_s.to_string(),
            self.url.to_string(),
            text(&folder),
        ];
        let card = |(card, bytes): &(u32, u64)| format!("card={card}:{}", bytes / MIB);
        argv.extend(deadline.levels.iter().map(card));
        let mut others = fallen::recorded(manager, self.state_dir).await?;
        others.extend(fallen::find(manager).await?);
        others.sort();
        others.dedup();
        argv.extend(others.iter().map(|unit| format!("unit={unit}")));
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        let after_ms = i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
        let record = Record {
            at_unix_ms: clock::unix_ms().saturating_add(after_ms),
            name: new.clone(),
        };
        manager.arm(&new, seconds, &argv).await?;
        let bytes = serde_json::to_vec(&record).unwrap_or_default();
        manager.host.write(&self.record_path(), &bytes).await?;
        self.stop(&old).await
    }

    /// Stops a timer that has not fired.
    async fn stop(&self, name: &str) -> Result<(), ServiceError> {
        let timer = format!("{name}.timer");
        if self.active(&timer).await? {
            self.manager.order(&["stop", "--", &timer]).await?;
        }
        Ok(())
    }

    /// An error while the script of this name runs.
    async fn not_passing(&self, name: &str) -> Result<(), ServiceError> {
        if !self.active(&format!("{name}.service")).await? {
            return Ok(());
        }
        Err(ServiceError::Failed {
            tried: format!("change the deadline of {}", self.manager.unit),
            what: "it has passed: the production value is being brought back now".to_string(),
            advice: format!(
                "Wait for its end; {} says how it goes",
                self.log_path().display()
            ),
        })
    }

    /// An error if it is too late to keep anything.
    pub async fn still_open(&self) -> Result<(), ServiceError> {
        for name in self.names() {
            self.not_passing(&name).await?;
        }
        Ok(())
    }

    pub async fn disarm(&self) -> Result<(), ServiceError> {
        for name in self.names() {
            self.stop(&name).await?;
            // A timer that fired before it was stopped has started its script.
            self.not_passing(&name).await?;
        }
        let manager = self.manager;
        manager.host.remove(&self.record_path()).await?;
        manager
            .host
            .remove(&self.log_path())
            .await
            .map_err(ServiceError::from)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_script_removes_every_trial() {
        assert!(SCRIPT.contains("z*-vramp-trial.conf") && SCRIPT.contains("z*-vramp-trial.env"));
        let any = Path::new("/run/a.d/zzzz-vramp-trial.conf");
        assert!(trial::is_trial(any));
        assert_eq!(
            trial::variables(any),
            Path::new("/run/a.d/zzzz-vramp-trial.env")
        );
    }

    /// Runs the script with stand-ins for the programs that it calls; gives what it logged and the calls of systemctl.
    fn run(cards: &[&str], states: &str, held: &[u32]) -> (String, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let program = |name: &str, text: &str| {
            std::fs::write(at(name), format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        let path = dir.path().display();
        program(
            "systemctl",
            &format!("echo \"$@\" >>{path}/calls\n[ \"$2\" != is-active ] || echo {states}"),
        );
        // Each look takes the next reading; the last stays.
        let readings: Vec<String> = held.iter().map(u32::to_string).collect();
        std::fs::write(at("readings"), readings.join("\n") + "\n").unwrap();
        program(
            "nvidia-smi",
            &format!(
                "cd {path}; r=$(head -n 1 readings); [ $(wc -l <readings) -eq 1 ] || sed -i 1d readings; echo \"0, $r, 40000\"; echo '1, 100, 40000'"
            ),
        );
        program("sleep", "exit 0");
        program(
            "curl",
            "case \"$*\" in *completions*) echo '{\"choices\":[]}';; *) echo '{\"data\": [{\"id\": \"m\", \"object\": \"model\"}]}';; esac",
        );
        for name in ["zzz-vramp-trial.conf", "zzz-vramp-trial.env", "10-own.conf"] {
            std::fs::write(at(name), "").unwrap();
        }
        std::fs::write(at("script.sh"), SCRIPT).unwrap();
        let log = at("log");
        let status = std::process::Command::new("sh")
            .arg(at("script.sh"))
            .args(["--user", "llm.service"])
            .arg(&log)
            .args(["3", "http://127.0.0.1:1"])
            .arg(dir.path())
            .args(cards)
            .arg("unit=web.service")
            .env("PATH", format!("{path}:/usr/bin:/bin"))
            .status()
            .unwrap();
        assert!(!at("zzz-vramp-trial.conf").exists() && !at("zzz-vramp-trial.env").exists());
        assert!(at("10-own.conf").exists());
        let log = std::fs::read_to_string(log).unwrap();
        assert_eq!(status.success(), !log.contains("still occupied"), "{log}");
        let calls = std::fs::read_to_string(at("calls")).unwrap();
        (log, calls.lines().map(str::to_string).collect())
    }

    #[test]
    fn the_script_stops_waits_for_the_cards_starts_and_proves() {
        let (log, calls) = run(&["card=0:1000"], "active", &[30_000, 20_000, 1_700]);
        assert!(log.contains("proven with a token"), "{log}");
        assert_eq!(
            calls,
            [
                "--user stop -- llm.service",
                "--user daemon-reload",
                "--user reset-failed -- llm.service",
                "--user start --no-block -- llm.service",
                "--user is-active -- llm.service",
                "--user start --no-block -- web.service"
            ]
        );
    }

    #[test]
    fn the_script_starts_nothing_on_an_occupied_card() {
        let (log, calls) = run(&["card=0:1000"], "active", &[30_000]);
        assert!(
            log.contains("NOT started: still occupied: card 0 (30000 MiB)"),
            "{log}"
        );
        assert!(
            !calls.iter().any(|call| call.contains("start")),
            "{calls:?}"
        );
        let (log, _) = run(&[], "failed", &[30_000]);
        assert!(log.contains("has ended again"), "{log}");
    }
}
