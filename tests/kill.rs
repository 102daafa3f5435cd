//! The cockpit dies in the middle of a restart: the next one finds it, and both ways out work.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::http::{free_port, json};
use support::place::Place;
use support::term::{Term, key};
use support::{secs, until};

/// The step to die in, and what makes the server long enough in it to be caught.
const STEPS: [(&str, &[&str]); 3] = [
    ("stop", &["--ignore-sigterm"]),
    ("watch", &["--start-ms", "4000"]),
    ("prove", &[]),
];

fn profile(place: &Place, port: u16, more: &[&str]) {
    let more: String = more
        .iter()
        .map(|argument| format!(", {argument:?}"))
        .collect();
    place.profile(&format!(
        r#"[profile.rig]
url = "http://127.0.0.1:{port}"
engine = "sglang"
ladder = ["32K", "64K"]
production = "32K"
[profile.rig.process]
argv = [{exe:?}, "sim", "--context-length", "{{context}}", "--port", "{port}"{more}]
start_when_absent = true
stop_grace = 3
release_after = 10
stuck_after = 30
"#,
        exe = env!("CARGO_BIN_EXE_vramp"),
    ));
}

fn served(port: u16) -> Option<u64> {
    json(port, "/server_info")?.get("context_length")?.as_u64()
}

fn intent(place: &Place) -> Option<PathBuf> {
    fn find(folder: &Path) -> Option<PathBuf> {
        std::fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
            let path = entry.path();
            if path.is_dir() {
                return find(&path);
            }
            let name = path.file_name()?.to_str()?;
            (name.starts_with("intent") && name.ends_with(".json")).then_some(path)
        })
    }
    find(place.path())
}

/// Asks for 65,536 and kills the cockpit as soon as the intent on disk says `step`.
fn die_in(place: &Place, port: u16, step: &str) {
    let term = place.cockpit(&[], 160, 48);
    term.wait_for("32,768 answered its first token", secs(60));
    assert_eq!(served(port), Some(32_768));
    term.set_context("64K");
    term.restart_at("65,536", secs(10));
    let wanted = format!("\"step\":\"{step}\"");
    let start = Instant::now();
    loop {
        let text = intent(place).and_then(|path| std::fs::read_to_string(path).ok());
        let squeezed: String = text.unwrap_or_default().split_whitespace().collect();
        if squeezed.contains(&wanted) {
            break;
        }
        assert!(
            start.elapsed() < secs(40),
            "no step {step}: {squeezed}\n{}",
            term.screen()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    term.signal(Signal::KILL);
}

/// The next cockpit, with the unfinished restart on screen.
fn next(place: &Place, step: &str) -> Term {
    let term = place.cockpit(&[], 160, 48);
    term.wait_for("nfinished restart", secs(20));
    assert!(
        term.screen().contains("65,536") && term.screen().contains("32,768"),
        "{step}\n{}",
        term.screen()
    );
    term
}

fn ends(place: &Place, mut term: Term, port: u16, context: u64) {
    until("the intent to be gone", secs(60), || {
        intent(place).is_none().then_some(())
    });
    assert_eq!(served(port), Some(context), "{}", term.screen());
    assert_eq!(place.servers("sim").len(), 1, "{:?}", place.servers("sim"));
    term.leave();
}

#[test]
fn it_goes_on_from_every_step() {
    let _alone = support::alone();
    for (step, more) in STEPS {
        let (place, port) = (Place::new(), free_port());
        profile(&place, port, more);
        die_in(&place, port, step);
        let term = next(&place, step);
        term.answer("nfinished restart", "g", secs(5));
        // The question about the new trial comes up by itself, as after any restart.
        term.answer("The server is running at 65,536", key::ESC, secs(60));
        ends(&place, term, port, 65_536);
    }
}

#[test]
fn it_goes_back_from_every_step() {
    let _alone = support::alone();
    for (step, more) in STEPS {
        let (place, port) = (Place::new(), free_port());
        profile(&place, port, more);
        die_in(&place, port, step);
        let term = next(&place, step);
        term.answer("nfinished restart", "r", secs(5));
        ends(&place, term, port, 32_768);
    }
}

#[test]
fn a_second_cockpit_only_looks() {
    let _alone = support::alone();
    let (place, port) = (Place::new(), free_port());
    profile(&place, port, &[]);
    let first = place.cockpit(&[], 160, 48);
    first.wait_for("32,768 answered its first token", secs(60));
    let second = place.cockpit(&[], 160, 48);
    second.wait_for("read-only", secs(20));
    second.set_context("64K");
    second.wait_for("nothing can be restarted from here", secs(5));
    assert_eq!(served(port), Some(32_768));
    drop(first);
}
