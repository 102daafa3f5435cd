//! Processes of a server that outlive its stop. What belongs to it is written down before the stop; afterwards only those very
//! processes, known by number, start time and boot, can be ended, and only by the operator's word.

use super::Event;
use super::intent;
use super::run::Run;
use crate::host::{Host, HostError};
use crate::service::{ProcessId, stats};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the kernel may take to end what was killed.
const KILL_TAKES: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(200);
/// What [`SIGNAL`] ends with where the number is another process's by now.
const GONE: i32 = 75;

/// Signals one process, if its number and start time are the given ones. The time of a start is field 22 of its status; the name before
/// it may hold anything, so fields count from the last parenthesis.
const SIGNAL: &str = r#"pid=$1 ticks=$2 signal=$3
stat=$(cat "/proc/$pid/stat" 2>/dev/null) || exit 75
set -f; set -- ${stat##*) }
[ "${20}" = "$ticks" ] || exit 75
kill -s "$signal" "$pid""#;

/// A process that belonged to the server before its stop and lives on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOver {
    pub id: ProcessId,
    /// Program name as the kernel keeps it.
    pub name: String,
}

impl LeftOver {
    /// `python3 (pid 4242)`.
    pub fn words(&self) -> String {
        format!("{} (pid {})", self.name, self.id.pid)
    }
}

/// The living ones of these numbers, told apart from every other process that ever had them.
pub(super) async fn identify(host: &dyn Host, pids: &[u32]) -> Result<Vec<LeftOver>, HostError> {
    if pids.is_empty() {
        return Ok(Vec::new());
    }
    let mut argv = vec!["cat".to_string(), "--".to_string()];
    argv.extend(pids.iter().map(|pid| format!("/proc/{pid}/stat")));
    let boot_id = host.boot_id().await?;
    // It fails where one of them has ended, and gives the others all the same.
    let output = host.run(&argv).await?;
    let found = stats(&output.stdout).into_iter();
    Ok(found
        .filter(|stat| stat.alive() && pids.contains(&stat.pid))
        .map(|stat| LeftOver {
            id: ProcessId {
                pid: stat.pid,
                start_ticks: stat.start_ticks,
                boot_id: boot_id.clone(),
            },
            name: stat.name,
        })
        .collect())
}

/// Those of the `members` that live.
pub(super) async fn living(
    host: &dyn Host,
    members: &[ProcessId],
) -> Result<Vec<LeftOver>, HostError> {
    let pids: Vec<u32> = members.iter().map(|id| id.pid).collect();
    let mut found = identify(host, &pids).await?;
    found.retain(|one| members.contains(&one.id));
    Ok(found)
}

pub(super) async fn signal(host: &dyn Host, id: &ProcessId, signal: &str) -> Result<(), String> {
    let argv = [
        "sh",
        "-c",
        SIGNAL,
        "sh",
        &id.pid.to_string(),
        &id.start_ticks.to_string(),
        signal,
    ]
    .map(str::to_string);
    match host.run(&argv).await {
        Ok(output) if matches!(output.code, Some(0 | GONE)) => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
        Err(error) => Err(error.to_string()),
    }
}

impl Run<'_> {
    /// Writes down what belongs to the server that is about to be stopped. Where that cannot be told, nothing of it will be ended.
    pub(super) async fn remember_members(&mut self) {
        let host = self.deps.host.as_ref();
        let found = match self.deps.service.pids().await {
            Ok(pids) => identify(host, &pids).await.map_err(|e| e.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let members = &mut self.on_disk.members;
        let before = members.len();
        match found {
            Ok(found) => {
                let new = found.into_iter().map(|one| one.id);
                let new: Vec<ProcessId> = new.filter(|id| !members.contains(id)).collect();
                members.extend(new);
            }
            Err(why) => {
                return self.note(&format!(
                    "the server's own processes cannot be told ({why}); none that outlives the stop will be ended from here"
                ));
            }
        }
        if members.len() > before
            && let Err(error) = intent::write(host, &self.deps.dir, &self.on_disk).await
        {
            // The intent without them still stands.
            self.note(&error.to_string());
        }
    }

    /// Ends left-overs, the gentle way first. What is not on record as the server's, or is another process by now, is left alone.
    pub(super) async fn end_left_overs(&mut self, asked: &[LeftOver]) {
        let known = |one: &&LeftOver| self.on_disk.members.contains(&one.id);
        let ids: Vec<ProcessId> = asked.iter().filter(known).map(|o| o.id.clone()).collect();
        let rounds = [("TERM", self.deps.limits.stop_grace), ("KILL", KILL_TAKES)];
        for (name, patience) in rounds {
            let left = self.left(&ids).await;
            if left.is_empty() {
                return;
            }
            for one in &left {
                let what = format!("SIG{name} to {}, left over from the server", one.words());
                match signal(self.deps.host.as_ref(), &one.id, name).await {
                    Ok(()) => self.tell(&what).await,
                    Err(why) => self.tell(&format!("{what}: refused ({why})")).await,
                }
            }
            let until = Instant::now() + patience;
            while Instant::now() < until && !self.left(&ids).await.is_empty() {
                sleep(LOOK).await;
            }
        }
        for one in self.left(&ids).await {
            let words = one.words();
            self.tell(&format!(
                "{words} does not end. End it by hand; the cards are waited for"
            ))
            .await;
        }
    }

    /// Those that live. On a host that cannot be asked none is known to.
    async fn left(&self, ids: &[ProcessId]) -> Vec<LeftOver> {
        let host = self.deps.host.as_ref();
        living(host, ids).await.unwrap_or_default()
    }

    /// A remark that must not be left out.
    async fn tell(&self, text: &str) {
        self.send(Event::Log(format!("vramp: {text}"))).await;
    }
}
