//! `vramp ramp` on a real systemd: a trial with a deadline, and what becomes of it when the program is gone.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::{Value, json};
use support::systemd::{Mode, Systemd};
use support::unit::{Bench, read};
use support::{secs, until};

fn bench(test: &str) -> Option<(Bench, String)> {
    let bench = Bench::new(Mode::System, test)?;
    let text = format!("[Service]\nExecStart={}\n", bench.command("4096"));
    Systemd::write(&bench.unit(), &text);
    bench.profile("");
    bench.start();
    Some((bench, text))
}

/// Runs `vramp ramp` to its end: the exit code, its document, and what it said.
fn ramp(bench: &Bench, arguments: &[&str]) -> (Option<i32>, Value, String) {
    let output = bench.vramp(&[&["ramp", "--json"], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let end = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    (output.status.code(), end, said)
}

#[test]
fn a_trial_with_a_deadline_outlives_the_walk_and_production_comes_back_by_itself() {
    let Some((bench, text)) = bench("a deadline without a cockpit") else {
        return;
    };
    let (code, plan, said) = ramp(&bench, &["--to", "8K", "--dry-run"]);
    assert_eq!(code, Some(0), "{said}");
    let place = plan["argument"]["place"].as_str().unwrap();
    assert_eq!(place, "/etc/systemd/system/llm.service line 3");
    assert_eq!(plan["argument"]["name"], "--context-length");
    bench.serves(4096);

    let within = ["--to", "8K", "--confirm-within", "12s", "--no-watch"];
    let (code, end, said) = ramp(&bench, &within);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        (&end["outcome"], &end["context"], &end["production"]),
        (&json!("trial"), &json!(8192), &json!(4096))
    );
    let left_ms = end["deadline"].as_i64().unwrap() - vramp::clock::unix_ms();
    assert!((0..=12_000).contains(&left_ms), "{left_ms}");
    assert!(
        said.contains("kept within 00:12, 4,096 comes back"),
        "{said}"
    );
    bench.serves(8192);
    assert!(bench.timers() > 0 && bench.trial().exists());
    bench.systemd.systemctl(&["daemon-reload"]);
    bench.serves(4096);
    assert!(!bench.trial().exists());
    let log = bench.place.state().join("services/unit/deadline.log");
    until("the script proves the value", secs(20), || {
        read(&log).contains("proven with a token").then_some(())
    });
    assert_eq!(bench.timers(), 0);
    assert_eq!(read(&bench.unit()), text);
}

#[test]
fn what_is_kept_in_time_has_no_timer_left() {
    let Some((bench, text)) = bench("a deadline that is kept") else {
        return;
    };
    let within = ["--to", "8K", "--confirm-within", "10m", "--no-watch"];
    let (code, end, said) = ramp(&bench, &within);
    assert_eq!(
        (code, &end["outcome"]),
        (Some(0), &json!("trial")),
        "{said}"
    );
    assert!(bench.timers() > 0);
    let (code, end, said) = ramp(&bench, &["--to", "8K", "--confirm", "8K"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        (&end["outcome"], &end["production"], &end["deadline"]),
        (&json!("production"), &json!(8192), &Value::Null)
    );
    assert_eq!(bench.timers(), 0);
    assert_eq!(read(&bench.unit()), text.replace("4096", "8192"));

    // By the cockpit, which finds the trial of the walk.
    let within = ["--to", "16K", "--confirm-within", "10m", "--no-watch"];
    let (code, _, said) = ramp(&bench, &within);
    assert_eq!(code, Some(0), "{said}");
    assert!(bench.timers() > 0);
    let term = bench.cockpit();
    term.wait_for("back in 09:", secs(20));
    term.run_task("Smoke");
    term.wait_for("the model answers", secs(30));
    term.run_task("Decide");
    term.answer("The server is running at 16,384", "y", secs(20));
    term.wait_for("16,384 is the production value now", secs(20));
    assert_eq!(bench.timers(), 0);
}

#[test]
fn a_deadline_that_passes_while_the_walk_watches_is_told() {
    let Some((bench, _)) = bench("a deadline in the first minute") else {
        return;
    };
    let (code, end, said) = ramp(&bench, &["--to", "8K", "--confirm-within", "5s"]);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(
        (&end["outcome"], &end["context"]),
        (&json!("rolled_back"), &json!(4096)),
        "{said}"
    );
    let reason = end["reason"].as_str().unwrap();
    assert!(reason.contains("was not kept in time"), "{reason}");
    bench.serves(4096);
}
