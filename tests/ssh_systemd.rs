//! A systemd unit on another host: raised and kept with the connection cut in the middle, and taken back by a deadline there.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::PathBuf;
use support::http::{free_port, json};
use support::place::Place;
use support::sshd::Sshd;
use support::systemd::{Mode, Systemd};
use support::term::{Term, key};
use support::{secs, until};

const VRAMP: &str = env!("CARGO_BIN_EXE_vramp");

/// The cockpit here, the unit and its manager behind an sshd.
struct Far {
    // Ends before the manager does.
    sshd: Sshd,
    systemd: Systemd,
    place: Place,
    port: u16,
}

impl Far {
    fn new(test: &str) -> Option<Far> {
        let systemd = Systemd::up(Mode::User, test)?;
        let sshd = Sshd::start_in(&systemd)?;
        let (place, port) = (Place::new(), free_port());
        Some(Far {
            sshd,
            systemd,
            place,
            port,
        })
    }

    fn text(&self, context: u64, start_ms: u64) -> String {
        format!(
            "# the server\n[Service]\nExecStart={VRAMP} sim --start-ms {start_ms} --port {} --context-length {context}\n",
            self.port
        )
    }

    fn unit(&self) -> PathBuf {
        self.systemd.lasting().join("llm.service")
    }

    /// Runs the unit at 4,096 and writes a profile for it.
    fn serve(&self, start_ms: u64, more: &str) {
        Systemd::write(&self.unit(), &self.text(4096, start_ms));
        self.place.profile(&format!(
            r#"[profile.unit-{}]
url = "http://127.0.0.1:{}"
engine = "sglang"
host = "ssh:vramp-test"
ssh_config = {:?}
ladder = ["4K", "8K"]

[profile.unit-{}.service]
kind = "systemd"
unit = "llm.service"
user = true
release_after = 5
stuck_after = 30
{more}
"#,
            self.port,
            self.port,
            self.sshd.config(),
            self.port,
        ));
        self.systemd.systemctl(&["daemon-reload"]);
        self.systemd.systemctl(&["start", "llm.service"]);
        self.serves(4096);
    }

    fn served(&self) -> Option<u64> {
        json(self.port, "/server_info")?
            .get("context_length")?
            .as_u64()
    }

    fn serves(&self, context: u64) {
        until(&format!("{context} is served"), secs(120), || {
            (self.served() == Some(context)).then_some(())
        });
    }

    fn cockpit(&self) -> Term {
        let term = self.place.cockpit(&["--quick"], 160, 48);
        term.wait_for("attached: ", secs(40));
        assert!(term.screen().contains("llm.service"), "{}", term.screen());
        term
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        // The remote keeps what stands beside a service in its user's home, which is this one's.
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let folder = home.map(|home| home.join(".local/state/vramp/services"));
        let name = format!("unit-{}", self.port);
        let _ = folder.map(|folder| std::fs::remove_dir_all(folder.join(name)));
    }
}

fn read(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_unit_behind_ssh_is_raised_and_kept_although_the_connection_is_cut() {
    let Some(far) = Far::new("a unit behind ssh") else {
        return;
    };
    far.serve(3_000, "");
    let before = far.systemd.main_pid("llm.service");
    let term = far.cockpit();
    term.set_context("8K");
    term.restart_at("8,192", secs(10));
    // The new server is on its way.
    term.wait_until("another process", secs(90), |_| {
        let now = far.systemd.main_pid("llm.service");
        now != before && now != 0
    });
    far.sshd.accept(false);
    far.sshd.cut();
    std::thread::sleep(secs(2));
    far.sshd.accept(true);
    term.answer("The server is running at 8,192", key::ESC, secs(90));
    assert_eq!(far.served(), Some(8192));
    assert_eq!(read(&far.unit()), far.text(4096, 3_000));
    let trial = far.systemd.main_pid("llm.service");
    term.run_task("Decide");
    term.answer("The server is running at 8,192", "y", secs(10));
    term.wait_for("8,192 is the production value now", secs(60));
    assert_eq!(read(&far.unit()), far.text(8192, 3_000), "the digits alone");
    assert_eq!(far.systemd.main_pid("llm.service"), trial);
    assert_eq!(far.systemd.property("llm.service", "DropInPaths"), "");
    let command = far.systemd.property("llm.service", "ExecStart");
    assert!(command.contains("--context-length 8192"), "{command}");
}

#[test]
fn a_deadline_behind_ssh_needs_neither_cockpit_nor_connection() {
    let Some(far) = Far::new("a deadline behind ssh") else {
        return;
    };
    far.systemd.linger();
    far.serve(300, "confirm_within = \"60s\"");
    let mut term = far.cockpit();
    term.set_context("8K");
    term.restart_at("8,192", secs(10));
    term.wait_for("The server is running at 8,192", secs(120));
    assert_eq!(far.served(), Some(8192));
    far.sshd.accept(false);
    far.sshd.cut();
    term.signal(rustix::process::Signal::KILL);
    term.wait_exit(secs(10));
    far.serves(4096);
    far.sshd.accept(true);
    assert_eq!(read(&far.unit()), far.text(4096, 300));
    assert_eq!(far.systemd.property("llm.service", "DropInPaths"), "");
    // The next cockpit finds production, and nothing to decide.
    let term = far.cockpit();
    assert!(!term.screen().contains("trial ("), "{}", term.screen());
}
