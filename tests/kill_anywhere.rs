//! kill -9 of the cockpit at random moments of a restart and of its confirmation, against a real systemd unit.
//!
//! `VRAMP_KILLS` says how many moments (40 without it), `VRAMP_SEED` repeats them.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use rustix::process::Signal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use support::http::{free_port, json};
use support::place::Place;
use support::systemd::{Mode, Systemd};
use support::term::{Term, key};
use support::{secs, until};

const VRAMP: &str = env!("CARGO_BIN_EXE_vramp");
/// Units that are worked on at once: most of the time each waits.
const LANES: usize = 4;
/// A restart of the unit takes about so long.
const RESTART_MS: u64 = 3_000;
const KEEP_MS: u64 = 600;

/// Deaths with the restart under way, and of the rest those that kept something.
#[derive(Default)]
struct Tally {
    unfinished: AtomicUsize,
    over: AtomicUsize,
    keeping: AtomicUsize,
}

struct Lane {
    systemd: Systemd,
    place: Place,
    port: u16,
    random: fastrand::Rng,
}

impl Lane {
    fn new(seed: u64) -> Option<Lane> {
        let systemd = Systemd::up(Mode::User, "a cockpit killed at random moments")?;
        let lane = Lane {
            systemd,
            place: Place::new(),
            port: free_port(),
            random: fastrand::Rng::with_seed(seed),
        };
        Systemd::write(&lane.unit(), &lane.text(4096));
        lane.place.profile(&format!(
            r#"[profile.unit]
url = "http://127.0.0.1:{}"
engine = "sglang"
ladder = ["4K", "8K"]

[profile.unit.service]
kind = "systemd"
unit = "llm.service"
user = true
release_after = 5
stuck_after = 30
"#,
            lane.port
        ));
        lane.systemd.systemctl(&["daemon-reload"]);
        lane.systemd.systemctl(&["start", "llm.service"]);
        until("4,096 is served", secs(30), || {
            (lane.served() == Some(4096)).then_some(())
        });
        Some(lane)
    }

    fn text(&self, context: u64) -> String {
        format!(
            "[Service]\nExecStart={VRAMP} sim --start-ms 400 \\\n  --port {} --context-length {context}\nRestart=always\nRestartSec=1s\n",
            self.port
        )
    }

    fn unit(&self) -> PathBuf {
        self.systemd.lasting().join("llm.service")
    }

    fn trial(&self) -> PathBuf {
        let folder = self.systemd.runtime().join("llm.service.d");
        folder.join("zzz-vramp-trial.conf")
    }

    fn intent(&self) -> PathBuf {
        self.place.state().join("services/unit/intent.json")
    }

    fn served(&self) -> Option<u64> {
        json(self.port, "/server_info")?
            .get("context_length")?
            .as_u64()
    }

    fn cockpit(&self) -> Term {
        self.systemd.cockpit(&self.place, &["--quick"])
    }

    /// The files are whole, old or new, whenever the cockpit died.
    fn check_files(&self, what: &str) {
        let text = std::fs::read_to_string(self.unit()).unwrap();
        assert!(
            [4096, 8192]
                .iter()
                .any(|context| self.text(*context) == text),
            "{what}: a torn unit: {text:?}"
        );
        if let Ok(trial) = std::fs::read_to_string(self.trial()) {
            assert!(
                trial.contains("ExecStart=\nExecStart=") && trial.ends_with('\n'),
                "{what}: a torn trial: {trial:?}"
            );
        }
        let intent = std::fs::read(self.intent()).unwrap_or_else(|_| b"{}".to_vec());
        let whole = serde_json::from_slice::<serde_json::Value>(&intent);
        assert!(whole.is_ok(), "{what}: a torn intent: {intent:?}");
    }

    fn pause(&mut self, most_ms: u64) -> u64 {
        let ms = self.random.u64(0..most_ms);
        std::thread::sleep(Duration::from_millis(ms));
        ms
    }

    /// One death. `term` shows a server that serves; gives the next such cockpit.
    fn die(&mut self, mut term: Term, tally: &Tally) -> Term {
        let from = self.served().expect("a server answers before");
        let (to, asked, shown) = match from {
            4096 => (8192, "8K", "8,192"),
            _ => (4096, "4K", "4,096"),
        };
        let keeping = self.random.u8(0..4) == 0;
        term.set_context(asked);
        term.wait_for(shown, secs(20));
        std::thread::sleep(Duration::from_millis(700));
        term.keys("y");
        let mut kept = false;
        let ms = if keeping && to == self.trial_value() {
            term.wait_for("The server is running at", secs(60));
            std::thread::sleep(Duration::from_millis(700));
            term.keys("y");
            kept = true;
            self.pause(KEEP_MS)
        } else {
            self.pause(RESTART_MS)
        };
        term.signal(Signal::KILL);
        term.wait_exit(secs(10));
        let what = format!("{from} to {to}, killed {ms} ms after the key, kept: {kept}");
        self.check_files(&what);
        let unfinished = self.intent().exists();
        if !unfinished {
            // Nothing had been touched, or all was over: a server answers now, without anybody's help.
            let now = self.served();
            assert!(
                [Some(from), Some(to)].contains(&now),
                "{what}: {now:?} is served"
            );
        }
        match (unfinished, kept) {
            (true, _) => tally.unfinished.fetch_add(1, Ordering::Relaxed),
            (false, true) => tally.keeping.fetch_add(1, Ordering::Relaxed),
            (false, false) => tally.over.fetch_add(1, Ordering::Relaxed),
        };
        let term = self.cockpit();
        if unfinished {
            let back = self.random.bool();
            term.answer("nfinished restart", if back { "r" } else { "g" }, secs(30));
            until("the intent is gone", secs(60), || {
                (!self.intent().exists()).then_some(())
            });
            let wanted = if back { from } else { to };
            assert_eq!(
                self.served(),
                Some(wanted),
                "{what}, back: {back}\n{}",
                term.screen()
            );
            term.wait_until("the end is shown", secs(20), |screen| {
                screen.contains("answered its first token")
                    || screen.contains("is back in service")
                    || screen.contains("The server is running at")
            });
        } else {
            term.wait_for("attached: ", secs(30));
        }
        self.check_files(&what);
        // The question of a new trial waits.
        term.settle(Duration::from_millis(500));
        term.keys(key::ESC);
        term.settle(Duration::from_millis(150));
        term
    }

    /// The value that would be a trial: the one that is not in the unit.
    fn trial_value(&self) -> u64 {
        let text = std::fs::read_to_string(self.unit()).unwrap();
        if text == self.text(4096) { 8192 } else { 4096 }
    }
}

#[test]
fn killed_at_any_moment_files_are_whole_and_both_ways_out_serve() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let kills = number("VRAMP_KILLS").unwrap_or(40) as usize;
    let seed: u64 = number("VRAMP_SEED").unwrap_or_else(|| fastrand::u64(0..1_000_000));
    println!("{kills} moments, VRAMP_SEED={seed}");
    let tally = Tally::default();
    let lanes: Vec<Lane> = (0..LANES)
        .map_while(|lane| Lane::new(seed + lane as u64))
        .collect();
    if lanes.is_empty() {
        return;
    }
    std::thread::scope(|scope| {
        for mut lane in lanes {
            let tally = &tally;
            scope.spawn(move || {
                let mut term = lane.cockpit();
                term.wait_for("attached: ", secs(30));
                for _ in 0..kills.div_ceil(LANES) {
                    term = lane.die(term, tally);
                }
            });
        }
    });
    let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
    let (unfinished, over) = (count(&tally.unfinished), count(&tally.over));
    println!(
        "{unfinished} in the middle, {over} before or after, {} while keeping",
        count(&tally.keeping)
    );
    assert!(
        unfinished * 5 >= kills,
        "the moments miss the restart: {unfinished} of {kills}"
    );
}
