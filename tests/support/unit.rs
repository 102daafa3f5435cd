//! A unit that runs the simulated rig, and the walk over it.

use super::http::{free_port, json};
use super::place::Place;
use super::systemd::{Mode, Systemd};
use super::term::{Term, key};
use super::{secs, until};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

const VRAMP: &str = env!("CARGO_BIN_EXE_vramp");

/// A unit that runs the simulated rig, a home with a profile for it, and the manager that has it.
pub struct Bench {
    pub systemd: Systemd,
    pub place: Place,
    pub port: u16,
}

impl Bench {
    pub fn new(mode: Mode, test: &str) -> Option<Bench> {
        let systemd = Systemd::up(mode, test)?;
        let (place, port) = (Place::new(), free_port());
        Some(Bench {
            systemd,
            place,
            port,
        })
    }

    /// The command of a server at `context`, in the words of a unit.
    pub fn command(&self, context: &str) -> String {
        format!(
            "{VRAMP} sim --start-ms 300 \\\n  --port {} --context-length {context} # not a comment",
            self.port
        )
        .replace(" # not a comment", "")
    }

    pub fn profile(&self, more: &str) {
        let user = self.systemd.mode == Mode::User;
        self.place.profile(&format!(
            r#"[profile.unit]
url = "http://127.0.0.1:{}"
engine = "sglang"
ladder = ["4K", "8K", "16K"]

[profile.unit.service]
kind = "systemd"
unit = "llm.service"
user = {user}
release_after = 5
stuck_after = 20
{more}
"#,
            self.port
        ));
    }

    pub fn unit(&self) -> PathBuf {
        self.systemd.lasting().join("llm.service")
    }

    pub fn start(&self) {
        self.systemd.systemctl(&["daemon-reload"]);
        self.systemd.systemctl(&["start", "llm.service"]);
        self.serves(4096);
    }

    pub fn served(&self) -> Option<u64> {
        let page =
            json(self.port, "/get_server_info").or_else(|| json(self.port, "/server_info"))?;
        page.get("context_length")?.as_u64()
    }

    pub fn serves(&self, context: u64) {
        until(&format!("{context} is served"), secs(30), || {
            (self.served() == Some(context)).then_some(())
        });
    }

    pub fn cockpit(&self) -> Term {
        let term = self.systemd.cockpit(&self.place, &["--quick"]);
        term.wait_for("attached: ", secs(30));
        assert!(term.screen().contains("llm.service"), "{}", term.screen());
        term
    }

    /// Raises to 8,192 and leaves the question open.
    pub fn raise(&self, term: &Term) {
        term.set_context("8K");
        term.restart_at("8,192", secs(10));
        term.answer("The server is running at 8,192", key::ESC, secs(60));
        self.serves(8192);
    }

    pub fn keep(&self, term: &Term) {
        term.run_task("Decide");
        term.answer("The server is running at 8,192", "y", secs(10));
        term.wait_for("8,192 is the production value now", secs(20));
    }

    pub fn roll_back(&self, term: &Term) {
        term.run_task("Decide");
        term.answer("The server is running at 8,192", "r", secs(10));
        term.answer("production value of 4,096 tokens", "y", secs(10));
        term.wait_for("4,096 answered its first token", secs(60));
        self.serves(4096);
    }

    pub fn trial(&self) -> PathBuf {
        let folder = self.systemd.runtime().join("llm.service.d");
        folder.join("zzz-vramp-trial.conf")
    }

    /// What a reboot brings.
    pub fn reboot(&self) {
        self.systemd.reboot();
        self.systemd.systemctl(&["start", "llm.service"]);
    }

    /// The built program without a terminal, to its end, where this manager is the machine's own.
    pub fn vramp(&self, arguments: &[&str]) -> Output {
        let inside = self.systemd.inside();
        let (script, first) = inside.split_first().unwrap();
        let mut command = self.place.command(script.to_str().unwrap());
        command.args(first).arg(VRAMP).args(arguments);
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// How many timers of deadlines there are.
    pub fn timers(&self) -> usize {
        let listed = self.systemd.systemctl(&["list-timers", "--all"]);
        listed.matches("vramp-deadline").count()
    }
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
