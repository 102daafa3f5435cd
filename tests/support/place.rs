//! A home for one test: its own HOME and XDG directories, and an end for everything that was started in it.

use super::term::Term;
use portable_pty::CommandBuilder;
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};

/// The variable by which processes of one test are known, whoever started them.
const MARK: &str = "VRAMP_TEST_PLACE";

/// A temporary home. When it goes, every process that was started in it is killed.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("vramp-test-")
            .tempdir()
            .unwrap();
        for name in ["config/vramp", "data", "state", "cache", "run"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        Place { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn data(&self) -> PathBuf {
        self.path().join("data/vramp")
    }

    pub fn state(&self) -> PathBuf {
        self.path().join("state/vramp")
    }

    /// Writes the profile file where `vramp` looks for it.
    pub fn profile(&self, text: &str) -> PathBuf {
        let path = self.path().join("config/vramp/vramp.toml");
        std::fs::write(&path, text).unwrap();
        path
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        let at = |name: &str| self.path().join(name).to_string_lossy().into_owned();
        vec![
            ("HOME", at("")),
            ("XDG_CONFIG_HOME", at("config")),
            ("XDG_DATA_HOME", at("data")),
            ("XDG_STATE_HOME", at("state")),
            ("XDG_CACHE_HOME", at("cache")),
            ("XDG_RUNTIME_DIR", at("run")),
            (MARK, at("")),
            ("TERM", "xterm-256color".into()),
            ("COLORTERM", "truecolor".into()),
            ("LANG", "C.UTF-8".into()),
        ]
    }

    /// The built program in a terminal of `columns` x `rows`.
    pub fn cockpit(&self, arguments: &[&str], columns: u16, rows: u16) -> Term {
        self.terminal(env!("CARGO_BIN_EXE_vramp"), arguments, columns, rows)
    }

    /// Any program in a terminal.
    pub fn terminal(&self, program: &str, arguments: &[&str], columns: u16, rows: u16) -> Term {
        self.terminal_with(program, arguments, &[], columns, rows)
    }

    /// Any program in a terminal, with more environment.
    pub fn terminal_with(
        &self,
        program: &str,
        arguments: &[&str],
        more: &[(&str, &str)],
        columns: u16,
        rows: u16,
    ) -> Term {
        let mut command = CommandBuilder::new(program);
        command.args(arguments);
        command.cwd(self.path());
        for name in ["NO_COLOR", "LC_ALL", "TMUX"] {
            command.env_remove(name);
        }
        for (name, value) in self.variables() {
            command.env(name, value);
        }
        for (name, value) in more {
            command.env(name, value);
        }
        Term::start(command, columns, rows)
    }

    /// The built program without a terminal, to its end.
    pub fn run(&self, arguments: &[&str]) -> std::process::Output {
        self.command(env!("CARGO_BIN_EXE_vramp"))
            .args(arguments)
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap()
    }

    /// A command of this home, to be started by the test itself.
    pub fn command(&self, program: &str) -> std::process::Command {
        let mut command = std::process::Command::new(program);
        command.envs(self.variables()).current_dir(self.path());
        command
    }

    /// Every process that was started in this home and lives.
    pub fn processes(&self) -> Vec<Process> {
        let mark = format!("{MARK}={}", self.path().join("").to_string_lossy());
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        entries
            .filter_map(|entry| {
                let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
                let environment = std::fs::read(entry.path().join("environ")).ok()?;
                let ours = environment.split(|b| *b == 0).any(|e| e == mark.as_bytes());
                ours.then(|| Process::of(pid)).flatten()
            })
            .collect()
    }

    /// The processes whose command line has `word`, without the cockpit's own terminals.
    pub fn servers(&self, word: &str) -> Vec<Process> {
        let mut found = self.processes();
        found.retain(|process| process.arguments.iter().any(|a| a.contains(word)));
        found
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for process in self.processes() {
            process.signal(Signal::KILL);
        }
    }
}

/// A living process.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    pub pid: u32,
    pub arguments: Vec<String>,
}

impl Process {
    /// The process `pid`; `None` if it is gone or only waits to be reaped.
    pub fn of(pid: u32) -> Option<Self> {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let arguments: Vec<String> = line
            .split(|b| *b == 0)
            .filter(|part| !part.is_empty())
            .map(|part| String::from_utf8_lossy(part).into_owned())
            .collect();
        (!arguments.is_empty()).then_some(Process { pid, arguments })
    }

    pub fn lives(&self) -> bool {
        Process::of(self.pid).is_some()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        // It may have ended by itself meanwhile.
        let _ = pid.map(|pid| kill_process(pid, signal));
    }

    /// CPU seconds used so far, of the process and all its threads.
    pub fn cpu_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let ticks = |at: usize| {
            fields
                .get(at)
                .and_then(|f| f.parse::<f64>().ok())
                .unwrap_or(0.0)
        };
        // Fields 14 and 15 of proc_pid_stat(5): user and system time in ticks, of which Linux shows 100 a second to programs.
        (ticks(11) + ticks(12)) / 100.0
    }
}
