//! The whole walk on the simulated rig, by keys alone, read from the screen.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::Path;
use support::place::Place;
use support::term::{Term, key};
use support::{secs, until};

#[test]
fn from_the_demo_s_first_frame_to_the_report() {
    let place = Place::new();
    let mut term = place.cockpit(&["demo", "--quick"], 160, 48);
    term.wait_for("SIMULATED", secs(20));
    term.wait_for("32,768 answered its first token", secs(60));

    term.run_task("Smoke");
    term.wait_for("the model answers", secs(30));

    term.run_task("Throughput");
    term.wait_for("throughput measured", secs(300));

    term.run_task("Long context 1K");
    term.wait_for("long-context measured", secs(120));

    // 60K does not fit, and says what it needs; Enter takes the operator to the step that frees it.
    term.wait_for("needs 60,200", secs(5));
    raise_from(&term, "Long context 60K", "65,536");
    term.answer("The server is running at 65,536", key::ESC, secs(90));
    term.wait_for("the question waits", secs(5));

    term.run_task("Long context 60K");
    term.wait_for("long-context measured", secs(120));
    raise_from(&term, "Long context 100K", "131,072");
    term.answer("The server is running at 131,072", "b", secs(90));

    term.wait_gone("Keep it as the production value", secs(5));

    // Measured first, the question comes back by itself and has the evidence of every value.
    term.wait_for("The server is running at 131,072", secs(300));
    for evidence in ["32,768", "65,536", "131,072", "4.9 ×", "2.4 ×", "1.2 ×"] {
        assert!(
            term.screen().contains(evidence),
            "{evidence}\n{}",
            term.screen()
        );
    }
    term.answer("Keep it as the production value", "y", secs(5));
    term.wait_for(
        "131,072 is the production value now, before it was 32,768",
        secs(10),
    );

    term.run_task("Checks at the chosen value");
    term.wait_until("the end of the checks", secs(300), |s| {
        s.lines()
            .any(|line| line.contains('✔') && line.contains("Checks at the chosen value"))
    });

    term.run_task("Report");
    term.wait_for("report written", secs(20));
    assert_eq!(term.leave().exit_code(), 0);
    term.assert_restored();

    // The demo takes its server along.
    until("the end of the simulated server", secs(10), || {
        place.servers("sim").is_empty().then_some(())
    });
    let files = files_under(place.path());
    let report = files
        .iter()
        .find(|f| f.extension().is_some_and(|e| e == "md"))
        .expect("a report");
    let text = std::fs::read_to_string(report).unwrap();
    for part in ["SIMULATED", "131,072", "qwen3.6-27b"] {
        assert!(text.contains(part), "{part} in {}", report.display());
    }
    decision_is_on_record(&files);
}

/// Enter on a blocked task, and yes to the restart it asks for.
fn raise_from(term: &Term, task: &str, context: &str) {
    term.run_task(task);
    term.restart_at(context, secs(10));
}

fn decision_is_on_record(files: &[std::path::PathBuf]) {
    let database = files
        .iter()
        .find(|f| f.extension().is_some_and(|e| e == "db"))
        .expect("a database");
    let database = rusqlite::Connection::open(database).unwrap();
    let (value, previous, simulated): (i64, i64, bool) = database
        .query_row(
            "SELECT value, previous, simulated FROM decisions",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .unwrap();
    assert_eq!((value, previous, simulated), (131_072, 32_768, true));
}

fn files_under(path: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(files_under(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}
