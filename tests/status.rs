//! `vramp status`, the real program against servers that give pages of known content, and against the simulated rig.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::{Value, json};
use std::collections::HashMap;
use std::process::Output;
use support::place::Place;
use support::{http, secs, until};

fn fixture(name: &str) -> String {
    let path = format!(
        "{}/tests/fixtures/engine/cases/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn expected(name: &str) -> Value {
    serde_json::from_str(&fixture(&format!("{name}.expected.json"))).unwrap()
}

/// A server that gives `pages` and knows no others.
fn server(pages: &[(&str, String)]) -> u16 {
    let pages: HashMap<String, String> = pages
        .iter()
        .map(|(path, body)| (path.to_string(), body.clone()))
        .collect();
    http::answering(move |path| {
        let (status, body) = match pages.get(path) {
            Some(body) => ("200 OK", body.clone()),
            None => ("404 Not Found", "{\"detail\":\"Not Found\"}".to_string()),
        };
        let kind = match body.starts_with('{') {
            true => "application/json",
            false => "text/plain; version=0.0.4",
        };
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    })
}

fn status(place: &Place, arguments: &[&str]) -> (Value, Output) {
    let output = place.run(&[&["status", "--json"], arguments].concat());
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (json, output)
}

fn at(port: u16) -> (Value, Output) {
    let url = format!("http://127.0.0.1:{port}");
    status(&Place::new(), &["--url", &url])
}

fn notes(seen: &Value) -> String {
    seen["notes"]
        .as_array()
        .unwrap()
        .iter()
        .fold(String::new(), |all, note| {
            all + note.as_str().unwrap() + "\n"
        })
}

#[test]
fn what_a_slot_has_is_the_truth() {
    let wanted = expected("mod-01");
    let (seen, output) = at(server(&[
        ("/v1/models", fixture("mod-01.models.json")),
        ("/props", fixture("mod-01.props.json")),
    ]));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(seen["engine"], "llamacpp");
    assert_eq!(seen["model"], wanted["model"]);
    let context = &seen["context"];
    assert_eq!(context["model_limit"], wanted["model_limit"]);
    assert_eq!(
        context["effective"],
        wanted["effective_context_per_request"]
    );
    assert_eq!(context["per_slot"], wanted["effective_context_per_request"]);
    assert_eq!(context["slots"], wanted["slots"]);
    // Nothing there answers a question: open pages are no readiness.
    assert_eq!(seen["ready"], false);
    assert!(notes(&seen).contains("not ready"), "{}", notes(&seen));
}

#[test]
fn an_adapter_that_is_listed_first_is_not_the_model() {
    let wanted = expected("mod-02");
    let (seen, _) = at(server(&[("/v1/models", fixture("mod-02.models.json"))]));
    assert_eq!(
        (&seen["engine"], &seen["model"]),
        (&json!("vllm"), &wanted["model"])
    );
    assert_eq!(
        seen["context"]["effective"],
        wanted["effective_context_per_request"]
    );
    assert!(notes(&seen).contains("sql-adapter"), "{}", notes(&seen));
    for unknown in ["running", "kv_use", "capacity", "production", "lock"] {
        assert_eq!(seen[unknown], Value::Null, "{unknown}: unknown is not zero");
    }
}

#[test]
fn several_engines_add_up_and_their_pressure_does_not() {
    let wanted = expected("met-01");
    let page = fixture("met-01.prom");
    let models =
        r#"{"object":"list","data":[{"id":"demo","owned_by":"vllm","max_model_len":32768}]}"#;
    for pages in [
        vec![("/metrics", page.clone())],
        vec![("/metrics", page), ("/v1/models", models.to_string())],
    ] {
        let (seen, _) = at(server(&pages));
        assert_eq!(
            (&seen["engine"], &seen["model"]),
            (&json!("vllm"), &json!("demo"))
        );
        assert_eq!(seen["kv_use"], wanted["kv_usage_max"]);
        for name in ["running", "waiting", "preemptions", "generated_tokens"] {
            assert_eq!(seen[name], wanted[name], "{name}");
        }
        assert_eq!(seen["foreign"], 26);
    }
}

#[test]
fn the_limit_that_lets_requests_wait_is_said_in_words() {
    let wanted = expected("met-02");
    let (seen, _) = at(server(&[("/metrics", fixture("met-02.prom"))]));
    assert_eq!(
        (&seen["engine"], &seen["model"]),
        (&json!("sglang"), &json!("demo"))
    );
    for (name, its) in [
        ("running", "running"),
        ("waiting", "waiting"),
        ("kv_use", "kv_usage"),
        ("state_use", "state_usage"),
        ("output_tok_s", "gen_tok_s"),
        ("accept_length", "accept_length"),
        ("bottleneck", "bottleneck"),
    ] {
        assert_eq!(seen[name], wanted[its], "{name}");
    }
    let context = &seen["context"];
    assert_eq!(context["effective"], wanted["context_len"]);
    assert_eq!(context["pool_tokens"], wanted["pool_tokens"]);
    let capacity = seen["capacity"].as_f64().unwrap();
    assert!(
        (capacity - 212_992.0 / 131_072.0).abs() < 1e-9,
        "{capacity}"
    );
    let words = notes(&seen);
    for part in [
        "state slots / max running requests",
        "92 requests wait",
        "35 % full",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
}

#[test]
fn nobody_there_is_a_failure_that_says_so() {
    let port = http::free_port();
    let (seen, output) = at(port);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(seen["ready"], false);
    assert_eq!(seen["engine"], Value::Null);
    assert!(
        notes(&seen).contains("connection refused"),
        "{}",
        notes(&seen)
    );
    // For a person it is the same in lines.
    let url = format!("http://127.0.0.1:{port}");
    let plain = Place::new().run(&["status", "--url", &url]);
    let text = String::from_utf8_lossy(&plain.stdout).into_owned();
    assert!(text.contains("ready        no"), "{text}");
}

#[test]
fn a_server_that_runs_is_ready_by_a_token_and_the_lock_is_looked_at() {
    let (place, port) = (Place::new(), http::free_port());
    place.profile(&format!(
        r#"[profile.rig]
url = "http://127.0.0.1:{port}"
ladder = ["32K", "64K"]
production = "32K"
[profile.rig.process]
argv = [{exe:?}, "sim", "--context-length", "{{context}}", "--port", "{port}"]
"#,
        exe = env!("CARGO_BIN_EXE_vramp"),
    ));
    let (seen, output) = status(&place, &[]);
    assert_eq!(output.status.code(), Some(1), "nothing runs yet");
    assert_eq!(seen["production"], 32_768);
    assert!(notes(&seen).contains("does not run"), "{}", notes(&seen));

    let started = place.run(&["ramp", "--to", "32K"]);
    assert_eq!(
        started.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&started.stderr)
    );
    let (seen, output) = status(&place, &[]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        (&seen["ready"], &seen["simulated"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(seen["context"]["effective"], 32_768);
    assert_eq!(
        (&seen["production"], &seen["trial"]),
        (&json!(32_768), &Value::Null)
    );
    assert_eq!(
        (&seen["intent"], &seen["lock"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(seen["foreign"], 0);

    // A cockpit holds the lock; looking takes nothing from it.
    let term = place.cockpit(&[], 120, 36);
    term.wait_for("32,768", secs(30));
    let lock = until("the lock to be held", secs(20), || {
        let (seen, _) = status(&place, &[]);
        seen["lock"].as_str().map(str::to_string)
    });
    assert!(lock.contains(", pid ") && lock.contains('@'), "{lock}");
}
