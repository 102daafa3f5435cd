//! The walk on a real llama-server with a real small model.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use support::http::{free_port, json};
use support::llama::Llama;
use support::place::{Place, Process};
use support::secs;
use support::term::{Term, key};

/// The context of one slot, as the server itself says.
fn served(port: u16) -> Option<u64> {
    json(port, "/props")?
        .pointer("/default_generation_settings/n_ctx")?
        .as_u64()
}

fn server(place: &Place) -> Process {
    let mut found = place.servers("--ctx-size");
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// A cockpit whose server is up at 2,048.
fn start(place: &Place, port: u16) -> Term {
    let term = place.cockpit(&["--quick"], 160, 48);
    term.wait_for("2,048 answered its first token", secs(120));
    assert_eq!(served(port), Some(2048));
    term
}

#[test]
fn from_2048_over_4096_to_8192_and_the_server_stays() {
    let _alone = support::alone();
    let Some(llama) = Llama::find("the walk on a real llama-server") else {
        return;
    };
    let (place, port) = (Place::new(), free_port());
    let profile = place.profile(&llama.profile(port, 2048, &[]));
    let mut term = start(&place, port);
    let first = server(&place);

    term.run_task("Smoke");
    term.wait_for("the model answers", secs(60));
    term.run_task("Throughput");
    term.wait_for("throughput measured", secs(600));
    term.run_task("Long context 256");
    term.wait_for("long-context measured", secs(600));
    term.wait_for("needs 3,016", secs(5));

    // A blocked task leads to the step that frees it.
    term.run_task("Long context 3K");
    term.restart_at("4,096", secs(10));
    term.answer("The server is running at 4,096", key::ESC, secs(180));
    let second = server(&place);
    assert_eq!(served(port), Some(4096));
    assert_ne!(second.pid, first.pid);
    assert!(!first.lives());

    term.run_task("Long context 3K");
    term.wait_for("long-context measured", secs(600));

    term.run_task("Raise to 8,192");
    term.restart_at("8,192", secs(10));
    term.answer("The server is running at 8,192", "y", secs(180));
    term.wait_for("8,192 is the production value now", secs(10));
    let third = server(&place);
    assert_eq!(served(port), Some(8192));
    assert!(!second.lives());
    let text = std::fs::read_to_string(&profile).unwrap();
    assert_eq!(
        text,
        llama.profile(port, 8192, &[]),
        "one number, and every other byte as it was"
    );

    term.run_task("Report");
    term.wait_for("report written", secs(20));
    let tasks = task_lines(&term);
    assert_eq!(term.leave().exit_code(), 0);
    term.assert_restored();

    // Quitting leaves it serving; the next cockpit finds it, and its list as it was.
    assert!(third.lives());
    assert_eq!(served(port), Some(8192));
    let mut again = place.cockpit(&["--quick"], 160, 48);
    again.wait_for("● up", secs(20));
    assert_eq!(server(&place).pid, third.pid);
    assert_eq!(task_lines(&again), tasks);
    again.leave();

    let output = place.run(&["decisions", "--json"]);
    let decisions: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        decisions
            .pointer("/0/value")
            .and_then(serde_json::Value::as_u64),
        Some(8192)
    );
    assert_eq!(
        decisions.pointer("/0/simulated"),
        Some(&serde_json::Value::Bool(false))
    );
}

/// Marks and titles of the tasks on the screen, without times and selection.
fn task_lines(term: &Term) -> Vec<String> {
    let titles = [
        "Attach",
        "Smoke",
        "Throughput",
        "Long context",
        "Raise",
        "Checks",
        "Decide",
        "Report",
    ];
    let screen = term.screen();
    let pane = screen.lines().filter_map(|line| line.split('│').nth(1));
    pane.filter_map(|line| {
        let title = titles.iter().find(|title| line.contains(*title))?;
        let mark = line.chars().find(|c| "✔▶⊘○✖–◆".contains(*c))?;
        Some(format!("{mark} {title}"))
    })
    .collect()
}

#[test]
fn a_context_that_cannot_start_ends_in_the_last_good_value() {
    let _alone = support::alone();
    let Some(llama) = Llama::find("a context that cannot start on a real llama-server") else {
        return;
    };
    let (place, port) = (Place::new(), free_port());
    // Three gigabytes are enough for 8,192 and far from enough for a million.
    let limited = llama.profile(port, 2048, &[]).replace(
        "argv = [",
        "argv = [\"/bin/sh\", \"-c\", \"ulimit -v 3000000; exec \\\"$0\\\" \\\"$@\\\"\", ",
    );
    place.profile(&limited);
    let mut term = start(&place, port);
    let first = server(&place);
    term.set_context("1M");
    term.restart_at("1,048,576", secs(10));
    term.wait_for("1,048,576 failed, 2,048 (", secs(120));
    // What counts comes first in the line, then the reason in the server's own words.
    for part in [
        "2,048 (",
        "is back in service, proven with a token",
        "insufficient memory",
    ] {
        assert!(term.screen().contains(part), "{part}\n{}", term.screen());
    }
    assert!(!first.lives());
    assert_eq!(served(port), Some(2048));
    server(&place);
    assert_eq!(term.leave().exit_code(), 0);
}

#[test]
fn a_context_that_is_capped_in_silence_never_becomes_a_trial() {
    let _alone = support::alone();
    let Some(llama) = Llama::find("a capped context on a real llama-server") else {
        return;
    };
    let (place, port) = (Place::new(), free_port());
    place.profile(&llama.profile(port, 2048, &[]));
    let mut term = start(&place, port);
    term.set_context("32K");
    term.restart_at("32,768", secs(10));
    term.wait_for("32,768 failed, 2,048 (", secs(120));
    for part in [
        "2,048 (",
        "is back in service, proven with a token",
        "8,192",
    ] {
        assert!(term.screen().contains(part), "{part}\n{}", term.screen());
    }
    assert!(
        !term.screen().contains("The server is running at"),
        "{}",
        term.screen()
    );
    assert_eq!(served(port), Some(2048));
    assert_eq!(term.leave().exit_code(), 0);
}
