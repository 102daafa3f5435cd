//! `vramp ramp`, the real program: on a real llama-server where one is installed, and on the simulated rig for what has to take time.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::process::{Child, Output, Stdio};
use std::time::Duration;
use support::http::{self, free_port};
use support::llama::Llama;
use support::place::Place;
use support::{secs, until};

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Leaves once the server is proven: the first minute is for the tests that are about it.
const BRIEF: [&str; 3] = ["ramp", "--json", "--no-watch"];

/// Runs `vramp ramp` to its end: the exit code, the one document on standard output, and what it said meanwhile.
fn ramp(place: &Place, arguments: &[&str]) -> (Option<i32>, Value, String) {
    let output = place.run(&[&BRIEF, arguments].concat());
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", err(&output)));
    (output.status.code(), json, err(&output))
}

/// The same, begun.
fn begin(place: &Place, arguments: &[&str]) -> Child {
    place
        .command(env!("CARGO_BIN_EXE_vramp"))
        .args([&BRIEF, arguments].concat())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn ended(child: Child) -> (Option<i32>, Value, String) {
    let output = child.wait_with_output().unwrap();
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", err(&output)));
    (output.status.code(), json, err(&output))
}

fn status(place: &Place) -> Value {
    serde_json::from_slice(&place.run(&["status", "--json"]).stdout).unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn last_decision(place: &Place) -> Value {
    let output = place.run(&["decisions", "--json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    all[0].clone()
}

/// The context of one slot, as the llama-server itself says.
fn slot(port: u16) -> Option<u64> {
    http::json(port, "/props")?
        .pointer("/default_generation_settings/n_ctx")?
        .as_u64()
}

#[test]
fn a_real_server_is_raised_kept_and_rolled_back() {
    let Some(llama) = Llama::find("vramp ramp on a real llama-server") else {
        return;
    };
    let (place, port) = (Place::new(), free_port());
    let profile = place.profile(&llama.profile(port, 2048, &[]));

    // Nothing runs: the production value comes first, then the step, which has a way back by then.
    let (code, end, said) = ramp(&place, &["--to", "4K"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        (&end["outcome"], &end["context"], &end["production"]),
        (&json!("trial"), &json!(4096), &json!(2048))
    );
    let steps = end["steps"].as_array().unwrap();
    let contexts: Vec<_> = steps.iter().map(|step| &step["context"]).collect();
    assert_eq!(contexts, [&json!(2048), &json!(4096)]);
    for step in steps {
        assert_eq!(step["outcome"], "ready");
        assert!(step["took_s"].as_f64().unwrap() > 0.0);
        assert_eq!(step["cause"], Value::Null);
    }
    assert_eq!(
        (&end["reason"], &end["simulated"]),
        (&Value::Null, &json!(false))
    );
    assert_eq!(slot(port), Some(4096));
    for part in [
        "restart 2,048 -> 4,096",
        "2,048 (previous) comes back",
        // From the header of the model's own file.
        "effective context: 4,096",
        "prove one real token",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let seen = status(&place);
    assert_eq!(
        (&seen["trial"], &seen["production"]),
        (&json!(4096), &json!(2048))
    );
    assert_eq!(
        (&seen["ready"], &seen["engine"]),
        (&json!(true), &json!("llamacpp"))
    );

    // A context that no memory holds: the value before is back, with the reason, and nothing is kept.
    let (code, end, said) = ramp(&place, &["--to", "100000000", "--confirm", "100000000"]);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(
        (&end["outcome"], &end["context"], &end["production"]),
        (&json!("rolled_back"), &json!(4096), &json!(2048))
    );
    let step = &end["steps"][0];
    assert_eq!(
        (&step["context"], &step["outcome"]),
        (&json!(100_000_000), &json!("rolled_back"))
    );
    let cause = step["cause"].as_str().unwrap();
    let reason = end["reason"].as_str().unwrap();
    assert!(!cause.is_empty() && reason.contains(cause), "{reason}");
    assert!(
        reason.contains("4,096 (previous) is back in service"),
        "{reason}"
    );
    assert!(said.contains("going back to 4,096"), "{said}");
    assert_eq!(slot(port), Some(4096));

    // Keeping what runs already needs no restart, and changes one number.
    let before = place.servers("--ctx-size");
    let (code, end, said) = ramp(&place, &["--to", "4096", "--confirm", "4096"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        (&end["outcome"], &end["context"], &end["production"]),
        (&json!("production"), &json!(4096), &json!(4096))
    );
    assert_eq!(end["steps"], json!([]));
    assert_eq!(place.servers("--ctx-size"), before);
    let text = std::fs::read_to_string(&profile).unwrap();
    assert_eq!(text, llama.profile(port, 4096, &[]));
    let decision = last_decision(&place);
    assert_eq!(
        (&decision["value"], &decision["previous"]),
        (&json!(4096), &json!(2048))
    );
    let evidence = decision["evidence"].as_array().unwrap();
    let contexts: Vec<_> = evidence.iter().map(|line| &line["context"]).collect();
    assert_eq!(contexts, [&json!(2048), &json!(4096), &json!(100_000_000)]);
    assert!(evidence[2]["failed"].is_string());

    // Another trial, and back.
    let (code, ..) = ramp(&place, &["--to", "2K"]);
    assert_eq!((code, slot(port)), (Some(0), Some(2048)));
    let (code, end, said) = ramp(&place, &["--roll-back"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        (&end["outcome"], &end["context"]),
        (&json!("production"), &json!(4096))
    );
    assert_eq!(slot(port), Some(4096));
}

#[test]
fn a_real_server_is_measured_after_each_step_and_the_runs_are_evidence() {
    let _alone = support::alone();
    let Some(llama) = Llama::find("vramp ramp --bench on a real llama-server") else {
        return;
    };
    let (place, port) = (Place::new(), free_port());
    place.profile(&llama.profile(port, 2048, &[]));
    let (code, end, said) = ramp(
        &place,
        &[
            "--to",
            "4096",
            "--bench",
            "long-context",
            "--confirm",
            "4096",
            "--quick",
        ],
    );
    let steps = end["steps"].as_array().unwrap();
    let first = steps[0]["run"].as_i64().unwrap_or_else(|| panic!("{said}"));
    let shown = place.run(&["runs", "show", &first.to_string()]);
    assert_eq!(shown.status.code(), Some(0));
    // On a busy machine a point may not count; then nothing is kept, and that is said.
    if code == Some(0) {
        assert_eq!(end["outcome"], "production");
        assert!(steps[1]["run"].as_i64() > Some(first));
        let evidence = &last_decision(&place)["evidence"];
        assert!(evidence[1]["longest"].is_array(), "{evidence}");
    } else {
        assert_eq!(code, Some(1), "{said}");
        assert!(
            end["reason"].as_str().unwrap().contains("do not count"),
            "{end}"
        );
        assert_eq!(end["production"], 2048);
    }
}

/// A simulated rig under a profile of its own.
fn rig(more: &[&str]) -> (Place, u16) {
    let (place, port) = (Place::new(), free_port());
    let more: String = more
        .iter()
        .map(|argument| format!(", {argument:?}"))
        .collect();
    place.profile(&format!(
        r#"[profile.rig]
url = "http://127.0.0.1:{port}"
engine = "sglang"
ladder = ["32K", "64K", "128K"]
production = "32K"
[profile.rig.process]
argv = [{exe:?}, "sim", "--context-length", "{{context}}", "--port", "{port}"{more}]
stop_grace = 3
release_after = 10
stuck_after = 30
"#,
        exe = env!("CARGO_BIN_EXE_vramp"),
    ));
    let (code, end, said) = ramp(&place, &["--to", "32K"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        (&end["outcome"], &end["simulated"]),
        (&json!("production"), &json!(true))
    );
    (place, port)
}

fn served(port: u16) -> Option<u64> {
    http::json(port, "/server_info")?
        .get("context_length")?
        .as_u64()
}

/// Waits until the intent on disk says `step`.
fn stands_at(place: &Place, step: &str) {
    let wanted = format!("\"step\":\"{step}\"");
    until(&format!("the step {step}"), secs(40), || {
        let folder = place.state().join("services");
        let found = std::fs::read_dir(folder).ok()?.flatten().any(|service| {
            let text = std::fs::read_to_string(service.path().join("intent.json"));
            let squeezed: String = text.unwrap_or_default().split_whitespace().collect();
            squeezed.contains(&wanted)
        });
        found.then_some(())
    });
}

/// A walk that watches the first minute of what it brings; its own words go to a file.
struct Watching {
    child: Child,
    words: std::path::PathBuf,
}

impl Watching {
    /// Begun, and waited for until the restart is proven.
    fn begin(place: &Place, arguments: &[&str]) -> Watching {
        let words = place.path().join("said");
        let child = place
            .command(env!("CARGO_BIN_EXE_vramp"))
            .args([&["ramp", "--json"], arguments].concat())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&words).unwrap())
            .spawn()
            .unwrap();
        until("the first minute is watched", secs(40), || {
            let said = std::fs::read_to_string(&words).unwrap();
            said.contains("watch the first minute").then_some(())
        });
        Watching { child, words }
    }

    fn ended(self) -> (Option<i32>, Value, String) {
        let (code, end, _) = ended(self.child);
        (code, end, std::fs::read_to_string(self.words).unwrap())
    }
}

#[test]
fn a_crash_in_the_first_minute_is_rolled_back_and_said() {
    let (place, port) = rig(&[]);
    let walk = Watching::begin(&place, &["--to", "64K", "--confirm", "64K"]);
    std::thread::sleep(secs(2));
    for server in place.servers("sim") {
        server.signal(Signal::KILL);
    }
    let (code, end, said) = walk.ended();
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(
        (&end["outcome"], &end["context"], &end["production"]),
        (&json!("rolled_back"), &json!(32_768), &json!(32_768)),
        "{said}"
    );
    let reason = end["reason"].as_str().unwrap();
    assert!(reason.contains("was ready and crashed"), "{reason}");
    let step = &end["steps"][0];
    assert_eq!(step["outcome"], "rolled_back");
    assert!(step["took_s"].as_f64().unwrap() > 0.0, "it had been ready");
    assert!(said.contains("watch the first minute"), "{said}");
    assert!(said.contains("going back to 32,768"), "{said}");
    assert_eq!(served(port), Some(32_768));
    assert_eq!(status(&place)["intent"], Value::Null);
}

#[test]
fn a_first_minute_without_a_crash_makes_the_last_good_and_ends() {
    let (place, port) = rig(&[]);
    let walk = Watching::begin(&place, &["--to", "64K"]);
    let (code, end, said) = walk.ended();
    assert_eq!(
        (code, &end["outcome"]),
        (Some(0), &json!("trial")),
        "{said}"
    );
    // What was watched for a minute is what the next failure comes back to.
    let seen = place.run(&["ramp", "--to", "128K", "--dry-run", "--json"]);
    let plan: Value = serde_json::from_slice(&seen.stdout).unwrap();
    let back = &plan["restarts"][0]["way_back"];
    assert_eq!(*back, json!({"context": 65_536, "why": "last good"}));

    // Ctrl-C ends the watch and leaves the server.
    let walk = Watching::begin(&place, &["--to", "128K"]);
    std::thread::sleep(secs(1));
    signal(&walk.child, Signal::INT);
    let (code, end, said) = walk.ended();
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(
        (&end["outcome"], &end["context"]),
        (&json!("interrupted"), &json!(131_072)),
        "{said}"
    );
    assert_eq!(served(port), Some(131_072));
}

#[test]
fn the_forecast_of_a_walk_is_set_beside_what_came() {
    let Some(llama) = Llama::find("a forecast of vramp ramp beside what came") else {
        return;
    };
    let (place, port) = (Place::new(), free_port());
    place.profile(&llama.profile(port, 2048, &["-lv", "4"]));
    let (code, _, said) = ramp(&place, &["--to", "2048"]);
    assert_eq!(code, Some(0), "{said}");
    let walk = Watching::begin(&place, &["--to", "4096"]);
    signal(&walk.child, Signal::INT);
    let (code, _, said) = walk.ended();
    assert_eq!(code, Some(130), "{said}");

    let seen = place.run(&["ramp", "--to", "8192", "--dry-run", "--json"]);
    let plan: Value = serde_json::from_slice(&seen.stdout).unwrap();
    let estimate = plan["restarts"][0]["estimate"].as_array().unwrap();
    let line = estimate.iter().find_map(|line| {
        let error = line.as_str()?.strip_prefix("last forecast ")?;
        error.strip_suffix(" GiB")?.parse::<f64>().ok()
    });
    // A cache of this model grows by some MiB, and by what was forecast.
    assert!(line.is_some_and(|error| error.abs() < 0.05), "{estimate:?}");
}

#[test]
fn a_dry_run_says_everything_and_touches_nothing() {
    let (place, port) = (Place::new(), free_port());
    let text = format!(
        r#"[profile.rig]
url = "http://127.0.0.1:{port}"
engine = "sglang"
ladder = ["4K", "8K"]
production = "4K"
[profile.rig.process]
argv = [{exe:?}, "sim", "--context-length", "{{context}}", "--port", "{port}"]
"#,
        exe = env!("CARGO_BIN_EXE_vramp"),
    );
    let profile = place.profile(&text);
    let dry = |arguments: &[&str]| place.run(&[&["ramp", "--dry-run"], arguments].concat());
    let output = dry(&[
        "--to",
        "16K",
        "--ladder",
        "4K,8K",
        "--confirm",
        "16K",
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&plan["outcome"], &plan["context"], &plan["production"]),
        (&json!("planned"), &Value::Null, &json!(4096))
    );
    assert_eq!(plan["keep"], 16_384);
    let argument = &plan["argument"];
    assert_eq!(
        (&argument["name"], &argument["text"], &argument["meaning"]),
        (
            &json!("--context-length"),
            &json!("4096"),
            &json!("4,096 tokens a request")
        )
    );
    let place_of = argument["place"].as_str().unwrap();
    assert!(place_of.contains("vramp.toml"), "{place_of}");
    let restarts = plan["restarts"].as_array().unwrap();
    let ways: Vec<_> = restarts
        .iter()
        .map(|one| {
            (
                &one["purpose"],
                &one["from"],
                &one["to"],
                &one["way_back"]["context"],
            )
        })
        .collect();
    let null = Value::Null;
    assert_eq!(
        ways,
        [
            (&json!("start"), &null, &json!(4096), &null),
            (&json!("change"), &json!(4096), &json!(8192), &json!(4096)),
            (&json!("change"), &json!(8192), &json!(16_384), &json!(8192)),
        ]
    );
    let diff = restarts[2]["diff"].as_array().unwrap();
    let lines: Vec<&str> = diff.iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].starts_with("- ") && lines[0].contains("8192"),
        "{lines:?}"
    );
    assert!(
        lines[1].starts_with("+ ") && lines[1].contains("16384"),
        "{lines:?}"
    );
    let steps = restarts[1]["steps"].as_array().unwrap();
    for step in [
        "validate",
        "stop",
        "wait for the cards",
        "watch the first minute",
    ] {
        assert!(steps.contains(&json!(step)), "{step}: {steps:?}");
    }
    assert_eq!(place.servers("sim").len(), 0);
    assert!(
        !place.state().exists() && !place.data().exists(),
        "nothing is written"
    );
    assert_eq!(std::fs::read_to_string(&profile).unwrap(), text);

    // On a server that runs: what it costs, in the words of the real walk.
    let (code, _, said) = ramp(&place, &["--to", "8K"]);
    assert_eq!(code, Some(0), "{said}");
    let before = place.servers("sim");
    let output = dry(&["--to", "16K"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        "dry run: nothing is touched",
        "restart 8,192 -> 16,384",
        "capacity: ",
        "+ ",
        "steps: validate, stop,",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(said.contains("capacity: "), "the walk says it too: {said}");
    assert!(said.contains("\n  - ") && said.contains("\n  + "), "{said}");
    let output = dry(&["--to", "8K"]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("no restart is needed"), "{shown}");
    let output = dry(&["--roll-back", "--json"]);
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let back = &plan["restarts"][0];
    assert_eq!(
        (&back["purpose"], &back["to"], &plan["context"]),
        (&json!("roll_back"), &json!(4096), &json!(8192))
    );
    assert_eq!(place.servers("sim"), before);
    assert_eq!(served(port), Some(8192));
}

#[test]
fn a_ladder_is_climbed_step_by_step() {
    let (place, port) = rig(&[]);
    let (code, end, said) = ramp(&place, &["--to", "128K", "--ladder", "32K,64K,128K,256K"]);
    assert_eq!(code, Some(0), "{said}");
    let steps = end["steps"].as_array().unwrap();
    let contexts: Vec<_> = steps.iter().map(|step| &step["context"]).collect();
    assert_eq!(contexts, [&json!(65_536), &json!(131_072)]);
    assert_eq!(served(port), Some(131_072));
    assert_eq!(
        (&end["outcome"], &end["production"]),
        (&json!("trial"), &json!(32_768))
    );
    // What a cockpit draws beside the memory is on record: each phase of each start once.
    let report = place.run(&["report", "--stdout"]);
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    let loading = report
        .lines()
        .filter(|line| line.contains("phase") && line.contains("loading weights"));
    assert_eq!(loading.count(), 3, "{report}");
}

#[test]
fn the_number_that_is_kept_is_typed_and_fits() {
    let (place, port) = rig(&[]);
    for (arguments, words) in [
        (&["--to", "64K", "--confirm", "65537"][..], "not the number"),
        (&["--confirm", "64K"], "--to"),
        (&[], "--roll-back"),
        (&["--to", "64K", "--bench", "nonsense"], "no plan"),
        (&["--to", "64K", "--read-only"], "--read-only"),
    ] {
        let output = place.run(&[&["ramp"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(err(&output).contains(words), "{}", err(&output));
    }
    assert_eq!(served(port), Some(32_768), "nothing was touched");
    // Nothing outside this program could take the trial back in time.
    let (code, end, _) = ramp(&place, &["--to", "64K", "--confirm-within", "30m"]);
    assert_eq!((code, &end["outcome"]), (Some(1), &json!("refused")));
    let reason = end["reason"].as_str().unwrap();
    assert!(reason.contains("deadline"), "{reason}");
    assert_eq!(served(port), Some(32_768));
}

#[test]
fn requests_of_others_are_looked_at_before() {
    let (place, port) = rig(&["--ttft-ms", "10", "--itl-ms", "100"]);
    let mut other = place
        .command(env!("CARGO_BIN_EXE_vramp"))
        .args(["bench", "--url", &format!("http://127.0.0.1:{port}")])
        .args(["--input", "100", "--output", "120", "--concurrency", "2"])
        .args(["--requests", "2"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the other's requests", secs(30), || {
        (status(&place)["foreign"].as_u64() >= Some(1)).then_some(())
    });
    let (code, end, _) = ramp(&place, &["--to", "64K"]);
    assert_eq!((code, &end["outcome"]), (Some(1), &json!("refused")));
    let reason = end["reason"].as_str().unwrap();
    for part in [
        "on the server",
        "nothing was stopped",
        "--drain",
        "--under-load",
    ] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert_eq!(served(port), Some(32_768));
    // They are waited for, and end well.
    let (code, end, said) = ramp(&place, &["--to", "64K", "--drain", "120s"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        (&end["outcome"], served(port)),
        (&json!("trial"), Some(65_536))
    );
    let other = other.wait().unwrap();
    assert_eq!(other.code(), Some(0), "the other lost its requests: {said}");
}

#[test]
fn two_at_once_and_the_second_is_told_who_works() {
    let (place, port) = rig(&["--start-ms", "5000"]);
    let first = begin(&place, &["--to", "64K"]);
    stands_at(&place, "watch");
    let (code, end, said) = ramp(&place, &["--to", "128K"]);
    assert_eq!((code, &end["outcome"]), (Some(1), &json!("refused")));
    let holder = format!("pid {},", first.id());
    for text in [end["reason"].as_str().unwrap(), said.as_str()] {
        assert!(text.contains(&holder), "{text}");
    }
    assert_eq!(end["steps"], json!([]));
    let seen = status(&place);
    assert!(seen["lock"].as_str().unwrap().contains(&holder), "{seen}");
    assert_eq!(
        (&seen["intent"]["step"], &seen["intent"]["to"]),
        (&json!("watch the start"), &json!(65_536))
    );
    let (code, end, said) = ended(first);
    assert_eq!(
        (code, &end["outcome"]),
        (Some(0), &json!("trial")),
        "{said}"
    );
    assert_eq!(served(port), Some(65_536));
}

#[test]
fn an_interrupted_step_goes_back_first() {
    let (place, port) = rig(&["--start-ms", "4000"]);
    let child = begin(&place, &["--to", "64K"]);
    stands_at(&place, "watch");
    // A terminal that goes away changes nothing.
    signal(&child, Signal::HUP);
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, Signal::INT);
    let (code, end, said) = ended(child);
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(
        (&end["outcome"], &end["context"]),
        (&json!("interrupted"), &json!(32_768)),
        "{said}"
    );
    assert_eq!(served(port), Some(32_768));
    assert_eq!(status(&place)["intent"], Value::Null);
    assert_eq!(place.servers("sim").len(), 1);
}

#[test]
fn what_a_killed_walk_left_is_found_and_both_ways_out_work() {
    for (way, wanted, outcome) in [
        ("go-on", 65_536, "trial"),
        ("roll-back", 32_768, "rolled_back"),
    ] {
        let (place, port) = rig(&["--start-ms", "4000"]);
        let mut child = begin(&place, &["--to", "64K"]);
        stands_at(&place, "watch");
        child.kill().unwrap();
        child.wait().unwrap();
        let (code, end, _) = ramp(&place, &["--to", "128K"]);
        assert_eq!((code, &end["outcome"]), (Some(1), &json!("refused")));
        let reason = end["reason"].as_str().unwrap();
        for part in [
            "65,536",
            "watch the start",
            "--recover go-on",
            "--recover roll-back",
        ] {
            assert!(reason.contains(part), "{part}: {reason}");
        }
        let (code, end, said) = ramp(&place, &["--recover", way]);
        assert_eq!(code, Some(0), "{way}: {said}");
        assert_eq!(
            (&end["outcome"], &end["context"]),
            (&json!(outcome), &json!(wanted)),
            "{way}: {said}"
        );
        assert_eq!(served(port), Some(wanted), "{way}");
        assert_eq!(place.servers("sim").len(), 1, "{way}");
        let (code, end, _) = ramp(&place, &["--recover", way]);
        assert_eq!((code, &end["outcome"]), (Some(1), &json!("refused")));
        let reason = end["reason"].as_str().unwrap();
        assert!(reason.contains("nothing to recover"), "{reason}");
    }
}

#[test]
fn a_server_that_is_not_the_services_own_is_left_alone() {
    let (place, port) = (Place::new(), free_port());
    let mut stranger = place
        .command(env!("CARGO_BIN_EXE_vramp"))
        .args(["sim", "--port", &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the stranger", secs(30), || served(port));
    place.profile(&format!(
        "[profile.rig]\nurl = \"http://127.0.0.1:{port}\"\n[profile.rig.process]\nargv = [\"/bin/sleep\", \"{{context}}\"]\n"
    ));
    for arguments in [&["--to", "64K"][..], &["--roll-back"]] {
        let (code, end, _) = ramp(&place, arguments);
        assert_eq!((code, &end["outcome"]), (Some(1), &json!("refused")));
        let reason = end["reason"].as_str().unwrap();
        assert!(
            reason.contains("vramp did not start that server") || reason.contains("no production"),
            "{reason}"
        );
    }
    assert!(stranger.try_wait().unwrap().is_none(), "it goes on");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}
