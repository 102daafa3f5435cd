//! `vramp doctor`, the real program: with nothing, on the simulated rig, and with things that are wrong.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use support::http::free_port;
use support::place::Place;

fn doctor(place: &Place, arguments: &[&str]) -> (Option<i32>, Vec<Value>) {
    let output = place.run(&[&["doctor", "--json"], arguments].concat());
    let json: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), json.as_array().unwrap().clone())
}

fn check<'a>(checks: &'a [Value], what: &str) -> &'a Value {
    let found = checks.iter().find(|check| check["what"] == what);
    found.unwrap_or_else(|| panic!("no check of {what}: {checks:#?}"))
}

fn result(checks: &[Value], what: &str) -> String {
    check(checks, what)["result"].as_str().unwrap().to_string()
}

fn profile(place: &Place, port: u16, program: &str) {
    place.profile(&format!(
        r#"[profile.rig]
url = "http://127.0.0.1:{port}"
ladder = ["32K", "64K"]
production = "32K"
[profile.rig.process]
argv = [{program:?}, "sim", "--context-length", "{{context}}", "--port", "{port}"]
"#
    ));
}

#[test]
fn without_a_profile_the_machine_alone_is_looked_at() {
    let (code, checks) = doctor(&Place::new(), &[]);
    assert_eq!(code, Some(0), "{checks:#?}");
    assert_eq!(result(&checks, "profile"), "warn");
    assert_eq!(result(&checks, "disk (data)"), "ok");
    assert_eq!(result(&checks, "disk (state)"), "ok");
    assert_eq!(result(&checks, "clock"), "ok");
    for what in ["driver", "NVML symbols", "cards", "terminal"] {
        check(&checks, what);
    }
    for check in &checks {
        // What does not stand well says what to do about it.
        let fine = check["result"] == "ok";
        assert_eq!(check["what_to_do"].is_null(), fine, "{check}");
        assert!(!check["detail"].as_str().unwrap().is_empty(), "{check}");
    }
}

#[test]
fn a_service_is_looked_at_stopped_and_running() {
    let (place, port) = (Place::new(), free_port());
    profile(&place, port, env!("CARGO_BIN_EXE_vramp"));
    let (code, checks) = doctor(&place, &[]);
    assert_eq!(code, Some(0), "{checks:#?}");
    assert_eq!(result(&checks, "URL"), "warn", "it is only stopped");
    assert_eq!(result(&checks, "service writable"), "ok");

    assert_eq!(place.run(&["ramp", "--to", "32K"]).status.code(), Some(0));
    let (code, checks) = doctor(&place, &[]);
    assert_eq!(code, Some(0), "{checks:#?}");
    for what in [
        "URL",
        "engine",
        "service readable",
        "service writable",
        "sudo",
        "journal",
        "ssh",
        "unfinished restart",
    ] {
        assert_eq!(result(&checks, what), "ok", "{what}: {checks:#?}");
    }
    let engine = check(&checks, "engine")["detail"].as_str().unwrap();
    assert!(
        engine.contains("sglang") && engine.contains("32,768"),
        "{engine}"
    );
    // For a person, and in a terminal.
    let term = place.cockpit(&["doctor"], 100, 50);
    term.wait_for("100x50, all colours, UTF-8", support::secs(30));
}

#[test]
fn what_is_wrong_fails_and_says_what_to_do() {
    let (place, port) = (Place::new(), free_port());
    profile(&place, port, "/no/such/server");
    let (code, checks) = doctor(&place, &[]);
    assert_eq!(code, Some(1));
    let writable = check(&checks, "service writable");
    assert_eq!(writable["result"], "fail");
    assert!(
        writable["detail"]
            .as_str()
            .unwrap()
            .contains("/no/such/server")
    );

    // A broken profile fails by itself, and the rest is looked at.
    place.profile("[profile.rig\n");
    let (code, checks) = doctor(&place, &[]);
    assert_eq!(code, Some(1));
    assert_eq!(result(&checks, "profile"), "fail");
    check(&checks, "clock");

    // Nobody at an address that is only attached to.
    let url = format!("http://127.0.0.1:{port}");
    let (code, checks) = doctor(&place, &["--url", &url]);
    assert_eq!((code, result(&checks, "URL").as_str()), (Some(1), "fail"));

    // A card of the profile that is not there.
    place.profile(&format!("[profile.rig]\nurl = {url:?}\ncards = [97]\n"));
    let (_, checks) = doctor(&place, &[]);
    assert_eq!(check(&checks, "cards")["result"], json!("fail"));
}

#[test]
fn a_disk_that_cannot_be_written_to_fails() {
    if rustix::process::getuid().is_root() {
        // Nothing is closed to root but what the kernel closes.
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_vramp"))
            .args(["doctor", "--json"])
            .env("XDG_DATA_HOME", "/proc/none")
            .output()
            .unwrap();
        let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
        let data = check(checks.as_array().unwrap(), "disk (data)").clone();
        assert_eq!(
            (output.status.code(), &data["result"]),
            (Some(1), &json!("fail")),
            "{data}"
        );
        return;
    }
    let place = Place::new();
    let data = place.path().join("data");
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o500)).unwrap();
    let (code, checks) = doctor(&place, &[]);
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(
        (code, result(&checks, "disk (data)").as_str()),
        (Some(1), "fail")
    );
}
