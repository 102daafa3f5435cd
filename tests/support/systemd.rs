//! A systemd of one test's own: the user's manager, or the system's in its own namespaces.

use super::place::Place;
use super::term::Term;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/services/systemd.sh");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    User,
    System,
}

/// A running manager; it ends with this.
pub struct Systemd {
    pub mode: Mode,
    state: tempfile::TempDir,
}

impl Systemd {
    /// Starts it, or says that `test` is left out: it needs root. Under `CI=true` nothing may be left out.
    pub fn up(mode: Mode, test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            let why = "a systemd for tests needs root";
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "{test}: {why}"
            );
            println!("left out: {test}: {why}");
            return None;
        }
        // Sockets lie in it, whose paths are short.
        let state = tempfile::Builder::new()
            .prefix("vsd-")
            .tempdir_in("/tmp")
            .unwrap();
        let systemd = Systemd { mode, state };
        let name = match mode {
            Mode::User => "user",
            Mode::System => "system",
        };
        let status = systemd.script(&["up", name]).status().unwrap();
        assert!(status.success(), "the manager did not come up");
        Some(systemd)
    }

    fn script(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(SCRIPT);
        command.args(arguments).arg(self.state.path());
        command.stdin(Stdio::null());
        command
    }

    /// As a reboot does: everything ends, what is not lasting is gone.
    pub fn reboot(&self) {
        assert!(self.script(&["reboot"]).status().unwrap().success());
    }

    fn path(&self, user: &str, system: &str) -> PathBuf {
        let path = self.state.path().join(match self.mode {
            Mode::User => user,
            Mode::System => system,
        });
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// Where the administrator's units lie.
    pub fn lasting(&self) -> PathBuf {
        self.path("home/.config/systemd/user", "etc")
    }

    /// Where a package's units lie.
    pub fn package(&self) -> PathBuf {
        self.path("home/.local/share/systemd/user", "units")
    }

    /// Where units lie that a reboot takes away.
    pub fn runtime(&self) -> PathBuf {
        self.path("xdg/systemd/user", "run/systemd/system")
    }

    /// Lets the units of the user go on without a session.
    pub fn linger(&self) {
        std::fs::write(self.state.path().join("linger/root"), "").unwrap();
    }

    /// A command that runs a command where this manager is the machine's own.
    pub fn inside(&self) -> Vec<PathBuf> {
        vec![SCRIPT.into(), "exec".into(), self.state.path().into()]
    }

    pub fn run(&self, argv: &[&str]) -> Output {
        let mut command = Command::new(SCRIPT);
        command.arg("exec").arg(self.state.path()).args(argv);
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// A command of `systemctl` to its end, and what it printed.
    pub fn systemctl(&self, arguments: &[&str]) -> String {
        let scope = match self.mode {
            Mode::User => "--user",
            Mode::System => "--system",
        };
        let mut argv = vec!["systemctl", "--no-pager", scope];
        argv.extend(arguments);
        let output = self.run(&argv);
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    }

    /// One property of a unit.
    pub fn property(&self, unit: &str, name: &str) -> String {
        self.systemctl(&["show", "--value", &format!("--property={name}"), unit])
    }

    /// The main process of a unit, in the manager's numbers.
    pub fn main_pid(&self, unit: &str) -> u32 {
        self.property(unit, "MainPID").parse().unwrap()
    }

    /// The built program in a terminal where this manager is the machine's own.
    pub fn cockpit(&self, place: &Place, arguments: &[&str]) -> Term {
        self.cockpit_with(place, arguments, &[])
    }

    /// The same with more environment.
    pub fn cockpit_with(&self, place: &Place, arguments: &[&str], more: &[(&str, &str)]) -> Term {
        let state = self.state.path().to_string_lossy().into_owned();
        let mut all = vec!["exec", &state, env!("CARGO_BIN_EXE_vramp")];
        all.extend(arguments);
        place.terminal_with(SCRIPT, &all, more, 160, 48)
    }

    /// Writes a file, and the folder it is in.
    pub fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        // Its folder goes after it.
        let _ = self.script(&["down"]).status();
    }
}
