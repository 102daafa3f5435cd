//! What is on record of a started process: `process.json` in the state directory.

use super::{Config, ProcessId, ServiceError, procfs};
use crate::host;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The form of the file that this program writes.
const VERSION: u32 = 1;
/// The environment entry by which a process and its descendants are known, whatever becomes of their parents and sessions.
pub const MARK: &str = "VRAMP_SERVICE";

/// One start of the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    version: u32,
    /// The value of [`MARK`] in the environment of this start: no other start ever has it.
    pub mark: String,
    /// The leader of the session; `None` while it is being started.
    pub process: Option<ProcessId>,
    pub boot_id: String,
    pub config: Config,
    pub argv: Vec<String>,
    pub log: PathBuf,
    pub started_unix_ms: i64,
}

impl Record {
    /// The record of a start that is about to happen.
    pub fn starting(
        mark: String,
        boot_id: String,
        config: Config,
        argv: Vec<String>,
        log: PathBuf,
        started_unix_ms: i64,
    ) -> Record {
        Record {
            version: VERSION,
            mark,
            process: None,
            boot_id,
            config,
            argv,
            log,
            started_unix_ms,
        }
    }

    /// Reads the record of a state directory; `None` if there is none.
    pub fn read(dir: &Path) -> Result<Option<Record>, ServiceError> {
        let path = path(dir);
        let Some(bytes) = host::read_file(&path)? else {
            return Ok(None);
        };
        let fail = |what: String| ServiceError::Failed {
            tried: format!("read {}", path.display()),
            what,
            advice:
                "It is left as it is. See by hand whether a server runs, then move the file away"
                    .to_string(),
        };
        #[derive(Deserialize)]
        struct Form {
            version: u32,
        }
        let form: Form = serde_json::from_slice(&bytes).map_err(|error| fail(error.to_string()))?;
        if form.version != VERSION {
            return Err(fail(format!(
                "it has form {}, this vramp knows form {VERSION}",
                form.version
            )));
        }
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| fail(error.to_string()))
    }

    /// Puts the record on disk, whole.
    pub fn write(&self, dir: &Path) -> Result<(), ServiceError> {
        let path = path(dir);
        let bytes = serde_json::to_vec_pretty(self).map_err(|error| ServiceError::Failed {
            tried: format!("write {}", path.display()),
            what: error.to_string(),
            advice: "Nothing was started".to_string(),
        })?;
        Ok(host::write_atomic(&path, &bytes)?)
    }

    /// The leader, if it is alive: its number, start time and boot are those on record.
    pub fn leader(&self) -> Option<procfs::Stat> {
        self.leader_or_zombie().filter(procfs::Stat::alive)
    }

    /// The leader, or what is left of it until its end is noticed.
    pub fn leader_or_zombie(&self) -> Option<procfs::Stat> {
        let id = self.process.as_ref()?;
        if !self.this_boot() {
            return None;
        }
        procfs::stat(id.pid).filter(|stat| stat.start_ticks == id.start_ticks)
    }

    /// Every living process of this start: the members of its session, and whoever carries the mark in its environment, which
    /// only descendants of this start do.
    ///
    /// The session is known to be ours while its leader is there. Without it the number could in theory have been given anew, so
    /// a member must also write to our log. (The mark alone would not do: programs that set their own title wipe their
    /// environment, as the workers of vLLM do.)
    pub fn members(&self) -> Vec<procfs::Stat> {
        if !self.this_boot() {
            return Vec::new();
        }
        let session = self.process.as_ref().map(|id| id.pid);
        let led = self.leader_or_zombie().is_some();
        let mark = self.entry();
        procfs::all()
            .into_iter()
            .filter(procfs::Stat::alive)
            .filter(|stat| {
                let in_session = Some(stat.session) == session;
                (in_session && (led || procfs::writes_to(stat.pid, &self.log)))
                    || procfs::has_entry(stat.pid, &mark)
            })
            .collect()
    }

    /// The start that a cockpit did not live to finish recording: the leader of a session that carries the mark.
    pub fn unfinished(&self) -> Option<ProcessId> {
        let mark = self.entry();
        let found = self.members();
        let leader = found
            .into_iter()
            .filter(|stat| stat.session == stat.pid && procfs::has_entry(stat.pid, &mark))
            .min_by_key(|stat| stat.start_ticks)?;
        Some(ProcessId {
            pid: leader.pid,
            start_ticks: leader.start_ticks,
            boot_id: self.boot_id.clone(),
        })
    }

    /// `NAME=value` as the environment holds it.
    fn entry(&self) -> String {
        format!("{MARK}={}", self.mark)
    }

    fn this_boot(&self) -> bool {
        host::boot_id().is_ok_and(|now| now == self.boot_id)
    }
}

/// Where the record lies.
pub fn path(dir: &Path) -> PathBuf {
    dir.join("process.json")
}
