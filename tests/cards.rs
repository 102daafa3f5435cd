//! Cards that stay occupied after the stop, in the whole program, with a stand-in for the driver's library: nothing is started on
//! them, who holds them is named, and only a left-over of the stopped server can be ended, by the operator's key.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

// Only a part of it is used here.
#[allow(dead_code)]
#[path = "support/nvml.rs"]
mod stub;
mod support;

use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use stub::Driver;
use support::http::free_port;
use support::place::{Place, Process};
use support::term::{Term, key};
use support::{secs, until};

const VRAMP: &str = env!("CARGO_BIN_EXE_vramp");

/// A server whose card is what the stand-in says. Where the file `leave` is there, it leaves a process behind that has neither its
/// environment nor its output, and does not end when asked.
const SERVER: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 1
if [ -e leave ]; then
  env -i /bin/sh -c 'trap "" TERM; exec /bin/sleep 600' >/dev/null 2>&1 &
  echo $! >left-over
fi
exec "$1" sim --start-ms 100 --port "$2" --context-length "$3"
"#;

struct Rig {
    place: Place,
    driver: Driver,
    /// Processes of the test itself, ended with it.
    others: Vec<Child>,
}

impl Rig {
    /// A server at 32,768 on a card of 48 GiB that is free but for it; `None` where the stand-in cannot be built.
    fn serving(leaves: bool) -> Option<Rig> {
        let driver = Driver::new("", &[])?;
        let (place, port) = (Place::new(), free_port());
        let script = place.path().join("server");
        std::fs::write(&script, SERVER).unwrap();
        place.profile(&format!(
            r#"[profile.rig]
url = "http://127.0.0.1:{port}"
engine = "sglang"
ladder = ["32K", "64K", "128K"]
production = "32K"
[profile.rig.process]
argv = ["sh", {script:?}, {VRAMP:?}, "{port}", "{{context}}"]
stop_grace = 2
release_after = 3
stuck_after = 30
"#
        ));
        if leaves {
            std::fs::write(place.path().join("leave"), "").unwrap();
        }
        let rig = Rig {
            place,
            driver,
            others: vec![],
        };
        rig.card(1, &[]);
        let (code, end) = rig.ramp(&["--to", "32K"]);
        assert_eq!((code, &end["outcome"]), (Some(0), &json!("production")));
        if leaves {
            std::fs::remove_file(rig.place.path().join("leave")).unwrap();
        }
        Some(rig)
    }

    /// What the driver says: GiB in use, and by whom as far as it lists them.
    fn card(&self, used: u64, holders: &[(u32, u64)]) {
        let holders: Vec<String> = holders
            .iter()
            .map(|(pid, gib)| format!("{pid}:{gib}G"))
            .collect();
        self.driver.set(&format!(
            "count = 1\ngpu0.name = NVIDIA RTX A6000\ngpu0.mem.total = 48G\ngpu0.mem.used = {used}G\ngpu0.procs = {}\n",
            holders.join(", ")
        ));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(VRAMP);
        command
            .args(["ramp", "--json", "--no-watch"])
            .args(arguments);
        command.env("VRAMP_NVML_LIB", self.driver.library());
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn ramp(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        ended(
            self.command(arguments)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap(),
        )
    }

    /// A cockpit that was asked for 65,536, and has stopped the server, which held 40 GiB.
    fn stopped(&self, server: &Process) -> Term {
        self.card(41, &[(server.pid, 40)]);
        let term = self.cockpit();
        term.set_context("64K");
        term.restart_at("65,536", secs(10));
        until("the server is stopped", secs(30), || {
            self.servers().is_empty().then_some(())
        });
        term
    }

    fn cockpit(&self) -> Term {
        let library = self.driver.library();
        let more = [("VRAMP_NVML_LIB", library.to_str().unwrap())];
        let term = self
            .place
            .terminal_with(VRAMP, &["--quick"], &more, 160, 48);
        term.wait_for("● up", secs(30));
        term.wait_for("RTX A6000", secs(30));
        term
    }

    fn servers(&self) -> Vec<Process> {
        self.place.servers("--context-length")
    }

    fn left_over(&self) -> Process {
        let text = std::fs::read_to_string(self.place.path().join("left-over")).unwrap();
        Process::of(text.trim().parse().unwrap()).expect("it lives on")
    }

    /// A process that has nothing to do with the server.
    fn stranger(&mut self) -> u32 {
        self.others
            .push(Command::new("sleep").arg("600").spawn().unwrap());
        self.others.last().unwrap().id()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        for child in &mut self.others {
            let _ = child.kill();
            let _ = child.wait();
        }
        let left = std::fs::read_to_string(self.place.path().join("left-over"));
        if let Some(process) = left
            .ok()
            .and_then(|pid| Process::of(pid.trim().parse().ok()?))
        {
            process.signal(rustix::process::Signal::KILL);
        }
    }
}

fn ended(child: Child) -> (Option<i32>, Value) {
    let output = child.wait_with_output().unwrap();
    (
        output.status.code(),
        serde_json::from_slice(&output.stdout).unwrap(),
    )
}

const ASKED: &str = "The cards were not free within 3 s";

#[test]
fn a_left_over_of_the_stopped_server_is_ended_by_its_key() {
    let Some(rig) = Rig::serving(true) else {
        return;
    };
    let (server, left_over) = (rig.servers().remove(0), rig.left_over());
    rig.card(41, &[(server.pid, 30), (left_over.pid, 10)]);
    let mut term = rig.cockpit();
    term.set_context("64K");
    term.restart_at("65,536", secs(10));
    until("the server is stopped", secs(30), || {
        rig.servers().is_empty().then_some(())
    });
    rig.card(11, &[(left_over.pid, 10)]);
    term.wait_for(ASKED, secs(30));
    let named = format!("sleep pid {}", left_over.pid);
    for part in [&named, "10.0 GiB  left over"] {
        assert!(term.screen().contains(part), "{part}: {}", term.screen());
    }
    assert!(left_over.lives() && rig.servers().is_empty());
    // Enter is no answer.
    term.answer(ASKED, key::ENTER, secs(5));
    assert!(term.screen().contains(ASKED) && left_over.lives());
    term.answer(ASKED, "e", secs(5));
    until("the left-over has ended", secs(30), || {
        (!left_over.lives()).then_some(())
    });
    // That it is gone does not free the card yet, and until then nothing is started.
    term.settle(secs(1));
    assert!(rig.servers().is_empty());
    rig.card(1, &[]);
    term.answer("The server is running at 65,536", key::ESC, secs(60));
    assert_eq!(rig.servers().len(), 1);
    term.keys("L");
    for signal in ["SIGTERM", "SIGKILL"] {
        term.wait_for(
            &format!("{signal} to sleep (pid {})", left_over.pid),
            secs(10),
        );
    }
    term.keys("q");
    term.leave();
}

#[test]
fn a_foreign_holder_is_named_and_never_offered_and_a_card_may_be_freed_late() {
    let Some(mut rig) = Rig::serving(false) else {
        return;
    };
    let server = rig.servers().remove(0);
    let stranger = rig.stranger();
    let mut term = rig.stopped(&server);
    rig.card(21, &[(stranger, 20)]);
    term.wait_for(ASKED, secs(30));
    let named = format!("sleep pid {stranger}");
    term.wait_for(&named, secs(10));
    for part in ["GiB  left over", "end sleep"] {
        assert!(!term.screen().contains(part), "{part}: {}", term.screen());
    }
    term.answer(ASKED, "e", secs(5));
    term.answer(ASKED, "w", secs(5));
    term.wait_gone(ASKED, secs(2));
    term.wait_for(ASKED, secs(30));
    assert!(Process::of(stranger).is_some() && rig.servers().is_empty());
    // Freed while it is asked: the restart goes on by itself.
    rig.card(1, &[]);
    term.answer("The server is running at 65,536", key::ESC, secs(60));
    assert!(Process::of(stranger).is_some());
    assert_eq!(rig.servers().len(), 1);
    term.leave();
}

#[test]
fn given_up_the_old_value_comes_back_once_the_card_is_free() {
    let Some(rig) = Rig::serving(false) else {
        return;
    };
    let server = rig.servers().remove(0);
    let mut term = rig.stopped(&server);
    rig.card(41, &[]);
    term.wait_for(ASKED, secs(30));
    assert!(
        term.screen()
            .contains("the driver lists no process that holds it"),
        "{}",
        term.screen()
    );
    term.answer(ASKED, "g", secs(5));
    // The way back waits as well.
    term.wait_for("give up: no server will run", secs(30));
    assert!(rig.servers().is_empty());
    rig.card(1, &[]);
    term.wait_for("is back in service, proven with a token", secs(60));
    let servers = rig.servers();
    assert!(servers.len() == 1 && servers[0].arguments.contains(&"32768".to_string()));
    term.leave();
}

#[test]
fn without_a_screen_a_holder_stands_in_the_json_and_is_left_alone() {
    let Some(rig) = Rig::serving(true) else {
        return;
    };
    let (server, left_over) = (rig.servers().remove(0), rig.left_over());
    rig.card(41, &[(server.pid, 30), (left_over.pid, 10)]);
    let walk = rig
        .command(&["--to", "64K", "--wait-cards", "2"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    until("the way back is taken", secs(60), || {
        let folder = rig.place.state().join("services");
        std::fs::read_dir(folder)
            .ok()?
            .flatten()
            .find_map(|service| {
                let text = std::fs::read(service.path().join("intent.json")).ok()?;
                let intent: Value = serde_json::from_slice(&text).ok()?;
                (intent["leg"] == "back" && intent["step"] == "wait_cards").then_some(())
            })
    });
    assert!(rig.servers().is_empty());
    rig.card(1, &[]);
    let (code, end) = ended(walk);
    assert_eq!((code, &end["outcome"]), (Some(1), &json!("rolled_back")));
    let reason = end["reason"].as_str().unwrap();
    assert!(reason.contains("not free within 2 s"), "{reason}");
    let held = &end["steps"][0]["held"][0];
    assert_eq!(
        (&held["card"], &held["holders"][1]["pid"]),
        (&json!(0), &json!(left_over.pid))
    );
    assert_eq!(held["holders"][1]["left_over"], true);
    assert_eq!(held["holders"][1]["bytes"], 10_u64 << 30);
    assert!(left_over.lives(), "nothing is ended without the operator");
    assert_eq!(rig.servers().len(), 1);
}

#[test]
fn without_a_screen_a_card_that_nobody_is_listed_on_halts_the_walk() {
    let Some(rig) = Rig::serving(false) else {
        return;
    };
    let server = rig.servers().remove(0);
    rig.card(41, &[(server.pid, 40)]);
    let walk = rig
        .command(&["--to", "64K", "--wait-cards", "2"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    until("the server is stopped", secs(30), || {
        rig.servers().is_empty().then_some(())
    });
    rig.card(41, &[]);
    let (code, end) = ended(walk);
    assert_eq!((code, &end["outcome"]), (Some(1), &json!("halted")));
    let reason = end["reason"].as_str().unwrap();
    assert!(
        reason.contains("the driver lists no process that holds it"),
        "{reason}"
    );
    assert_eq!(end["steps"][0]["held"][0]["holders"], json!([]));
    assert!(rig.servers().is_empty());
    // Free at last, the way back that is left is taken.
    rig.card(1, &[]);
    let (code, end) = rig.ramp(&["--recover", "roll-back"]);
    assert_eq!(
        (code, &end["context"], rig.servers().len()),
        (Some(0), &json!(32_768), 1),
        "{end}"
    );
}
