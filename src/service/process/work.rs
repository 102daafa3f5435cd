//! What the process service does, blocking.

use super::Settings;
use crate::clock;
use crate::host;
use crate::profile::{self, Launch};
use crate::service::record::{self, Record};
use crate::service::template::{self, Rendered};
use crate::service::{
    Config, Port, ProcessId, ServiceError, Standing, Status, check, child, listener, log, procfs,
};
use crate::units;
use rustix::process::Signal;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a stop looks whether the processes have gone.
const LOOK: Duration = Duration::from_millis(50);
/// How long the kernel may take to end what was killed: a process in the middle of a driver call ends late.
const KILL_TAKES: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Work {
    settings: Settings,
    pub name: String,
    pub log: PathBuf,
    /// How the last process ended that was ours to wait for.
    exit: Mutex<Option<(ProcessId, i32)>>,
    /// The launch and the context that are confirmed, as the profile has them by now.
    confirmed: Mutex<(Launch, Option<u64>)>,
    /// A start or stop goes on when nobody waits for it any more: the next one waits for its end.
    acting: Mutex<()>,
}

impl Work {
    pub fn new(settings: Settings) -> Work {
        let program = settings
            .launch
            .argv
            .first()
            .map(|program| program.rsplit('/').next().unwrap_or(program));
        let name = format!(
            "process {}",
            units::clean(program.unwrap_or("without a command"))
        );
        let log = settings
            .log
            .clone()
            .unwrap_or_else(|| settings.state_dir.join("server.log"));
        Work {
            confirmed: Mutex::new((settings.launch.clone(), settings.production)),
            settings,
            name,
            log,
            exit: Mutex::new(None),
            acting: Mutex::new(()),
        }
    }

    /// The record of the last start, with an unfinished one completed.
    fn record(&self) -> Result<Option<Record>, ServiceError> {
        let dir = &self.settings.state_dir;
        let Some(mut record) = Record::read(dir)? else {
            return Ok(None);
        };
        if record.process.is_none()
            && let Some(id) = record.unfinished()
        {
            record.process = Some(id);
            record.write(dir)?;
        }
        Ok(Some(record))
    }

    pub fn members(&self) -> Result<Vec<procfs::Stat>, ServiceError> {
        Ok(self
            .record()?
            .map(|record| record.members())
            .unwrap_or_default())
    }

    pub fn status(&self) -> Result<Status, ServiceError> {
        let Some(record) = self.record()? else {
            return Ok(Status::Stopped {
                exit: self.last_exit(None),
            });
        };
        let Some(id) = record.process.clone() else {
            return Ok(Status::Stopped { exit: None });
        };
        match record.leader_or_zombie() {
            Some(stat) if stat.alive() => Ok(Status::Running {
                id,
                config: Some(record.config),
                started_unix_ms: record.started_unix_ms,
            }),
            Some(stat) => {
                self.reap(&stat, &id);
                Ok(Status::Stopped {
                    exit: self.last_exit(Some(&id)),
                })
            }
            None => Ok(Status::Stopped {
                exit: self.last_exit(Some(&id)),
            }),
        }
    }

    /// Takes note of the end of the leader, if it is for us to wait for.
    fn reap(&self, stat: &procfs::Stat, id: &ProcessId) {
        if let Some(code) = child::reap(stat) {
            let mut exit = self.exit.lock().unwrap_or_else(PoisonError::into_inner);
            *exit = Some((id.clone(), code));
        }
    }

    /// How it ended: the process `of`, or whichever was the last.
    fn last_exit(&self, of: Option<&ProcessId>) -> Option<i32> {
        let exit = self.exit.lock().unwrap_or_else(PoisonError::into_inner);
        exit.as_ref()
            .filter(|(id, _)| of.is_none_or(|of| of == id))
            .map(|(_, code)| *code)
    }

    pub fn written_in(&self) -> Option<String> {
        let (file, name) = self.settings.profile.as_ref()?;
        Some(format!("{}, production of profile {name}", file.display()))
    }

    pub fn standing(&self) -> Standing {
        let (launch, production) = self
            .confirmed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let trial_note = match production {
            Some(tokens) => format!(
                "a reboot ends this process; the next start brings the production value {}",
                units::thousands(tokens)
            ),
            None => {
                "a reboot ends this process; no production value is kept to start with".to_string()
            }
        };
        Standing {
            launch,
            production,
            trial_note,
            deadline_unix_ms: None,
            launch_fixed: None,
            notes: Vec::new(),
        }
    }

    /// Writes the context, and the launch if it is another one, into the profile.
    pub fn confirm(&self, config: &Config) -> Result<String, ServiceError> {
        let tried = format!("keep {}", units::thousands(config.context));
        let Some((file, name)) = &self.settings.profile else {
            return Err(failed(
                &tried,
                "this profile came from no file, so there is nothing to write the value to",
                "Write a profile with: vramp init",
            ));
        };
        let mut confirmed = self
            .confirmed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let launch = &config.launch;
        let written = if *launch == confirmed.0 {
            Ok(())
        } else {
            profile::set_launch(file, name, &launch.argv, &launch.env)
        };
        written
            .and_then(|()| profile::set_production(file, name, config.context))
            .map_err(|error| failed(&tried, error, "The trial goes on"))?;
        *confirmed = (launch.clone(), Some(config.context));
        Ok(format!("written to {}", file.display()))
    }

    pub fn validate(&self, config: &Config) -> Result<Rendered, ServiceError> {
        let rendered = template::render(config).map_err(|what| {
            failed(
                &format!("fill in the launch of {}", self.name),
                what,
                "Correct the launch in the profile",
            )
        })?;
        check::launch(&rendered, config.launch.cwd.as_deref())?;
        check::writable(&self.log)?;
        check::writable(&record::path(&self.settings.state_dir))?;
        if let Port::Other(what) = self.port()? {
            return Err(ServiceError::Stranger { what });
        }
        Ok(rendered)
    }

    pub fn port(&self) -> Result<Port, ServiceError> {
        let listeners = listener::at(&self.settings.url);
        let Some(first) = listeners.first() else {
            return Ok(Port::Nobody);
        };
        let inodes: Vec<u64> = listeners.iter().map(|one| one.inode).collect();
        let holders = procfs::socket_holders(&inodes);
        let ours = self.members()?;
        if holders
            .iter()
            .any(|one| ours.iter().any(|our| our.pid == one.pid))
        {
            return Ok(Port::Ours);
        }
        let who = match holders.first() {
            Some(stat) => format!("{} (pid {})", stat.name, stat.pid),
            None => "a process that this user may not look at".to_string(),
        };
        Ok(Port::Other(format!("{who} listens on {}", first.address)))
    }

    pub fn start(&self, config: Config) -> Result<ProcessId, ServiceError> {
        let _alone = self.acting.lock().unwrap_or_else(PoisonError::into_inner);
        let tried = format!("start {}", self.name);
        if let Some(running) = self.members()?.first() {
            return Err(failed(
                &tried,
                format!(
                    "processes of the last start still run, {} (pid {}) first",
                    running.name, running.pid
                ),
                "Stop it first",
            ));
        }
        let rendered = self.validate(&config)?;
        let dir = &self.settings.state_dir;
        for folder in [Some(dir.as_path()), self.log.parent()]
            .into_iter()
            .flatten()
        {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(|error| failed(&tried, error, "Make the folder writable"))?;
        }
        let started_unix_ms = clock::unix_ms();
        let output = self
            .open_log(&config, started_unix_ms)
            .map_err(|error| self.log_error(error))?;
        let mut record = Record::starting(
            format!("{:032x}", fastrand::u128(..)),
            host::boot_id()?,
            config,
            rendered.argv.clone(),
            // As /proc will name it.
            std::fs::canonicalize(&self.log).map_err(|error| self.log_error(error))?,
            started_unix_ms,
        );
        record.write(dir)?;
        let pid = child::spawn(&rendered, &record, output)
            .map_err(|error| failed(&tried, error, "Is setsid (util-linux) installed?"))?;
        let stat = child::own_session(pid).ok_or_else(|| {
            failed(
                &tried,
                format!("process {pid} is not in /proc"),
                "Is /proc mounted?",
            )
        })?;
        let id = ProcessId {
            pid,
            start_ticks: stat.start_ticks,
            boot_id: record.boot_id.clone(),
        };
        record.process = Some(id.clone());
        // If this fails, the mark in the first record still leads to the process.
        record.write(dir)?;
        Ok(id)
    }

    /// Opens the log and marks the start in it. A last line of the former process that did not end is ended.
    fn open_log(&self, config: &Config, at_unix_ms: i64) -> std::io::Result<File> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(&self.log)?;
        let mut last = [b'\n'];
        if file.metadata()?.len() > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        let gap = if last == [b'\n'] { "" } else { "\n" };
        writeln!(
            file,
            "{gap}--- vramp: start of {} at {}, context {} ---",
            self.name,
            clock::date_time(at_unix_ms),
            units::thousands(config.context)
        )?;
        Ok(file)
    }

    /// SIGTERM to the process group of the leader, and to those that outlive it; SIGKILL to all that are left after the grace.
    pub fn stop(&self) -> Result<(), ServiceError> {
        let _alone = self.acting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(record) = self.record()? else {
            return Ok(());
        };
        if let Some(leader) = record.leader() {
            child::signal_group(&leader);
        }
        let begun = Instant::now();
        let grace = self.settings.stop_grace;
        let mut orphans_told = false;
        let left = loop {
            let members = record.members();
            if members.is_empty() {
                break members;
            }
            let waited = begun.elapsed();
            if waited >= grace + KILL_TAKES {
                break members;
            }
            if waited >= grace {
                members
                    .iter()
                    .for_each(|one| child::signal(one, Signal::KILL));
            } else if record.leader().is_none() && !orphans_told {
                members
                    .iter()
                    .for_each(|one| child::signal(one, Signal::TERM));
                orphans_told = true;
            }
            std::thread::sleep(LOOK);
        };
        if let Some(one) = left.first() {
            return Err(failed(
                &format!("stop {}", self.name),
                format!(
                    "{} (pid {}, state {}) is still there {} s after SIGKILL",
                    one.name,
                    one.pid,
                    one.state,
                    KILL_TAKES.as_secs()
                ),
                "A process in state D waits for the kernel or the driver: look at dmesg",
            ));
        }
        if let (Some(zombie), Some(id)) = (record.leader_or_zombie(), &record.process) {
            self.reap(&zombie, id);
        }
        Ok(host::remove_file(&record::path(&self.settings.state_dir))?)
    }

    pub fn log_end(&self) -> Result<u64, ServiceError> {
        log::end(&self.log).map_err(|error| self.log_error(error))
    }

    pub fn log_since(&self, from: u64) -> Result<(Vec<String>, u64), ServiceError> {
        let read =
            |ended| log::since(&self.log, from, ended).map_err(|error| self.log_error(error));
        let (lines, next) = read(false)?;
        // A last line without an end is given when nobody is left to end it.
        let rest = lines.is_empty() && log::end(&self.log).is_ok_and(|end| end > next);
        if rest && self.members()?.is_empty() {
            return read(true);
        }
        Ok((lines, next))
    }

    fn log_error(&self, error: std::io::Error) -> ServiceError {
        failed(
            &format!("use the log {}", self.log.display()),
            error,
            "Name a log that can be written in the profile",
        )
    }
}

pub fn failed(tried: &str, what: impl ToString, advice: &str) -> ServiceError {
    ServiceError::Failed {
        tried: tried.to_string(),
        what: what.to_string(),
        advice: advice.to_string(),
    }
}
