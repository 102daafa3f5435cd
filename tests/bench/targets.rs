//! Latency targets, saturation and drift, through the real program against a server that slows down as it is loaded.

use super::client::{cell, events, job, points, reasons};
use super::server::{Manner, Server};
use super::support::bench::Bench;
use super::support::place::Place;
use serde_json::Value;
use vramp::bench::point::Validity;
use vramp::engine::Kind;

/// A first token after 5 ms and 40 more for every stream that is open.
fn crowded() -> Server {
    Server::start(Manner {
        ttft_ms: 5,
        ttft_ms_each: 40,
        ..Manner::default()
    })
}

fn measure(server: &Server, more: &[&str]) -> Value {
    let bench = Bench {
        place: Place::new(),
        port: server.address.port(),
    };
    let common = [
        "--model", "m", "--engine", "vllm", "--input", "50", "--output", "40",
    ];
    let (code, json) = bench.json(&[&common[..], more].concat());
    assert_eq!(code, Some(0), "{json:#}");
    json
}

fn levels(json: &Value) -> Vec<(u64, f64, f64)> {
    let points = json["points"].as_array().unwrap();
    let of = |point: &Value| {
        let rate = point["requests_s"].as_f64().unwrap();
        (
            point["concurrency"].as_u64().unwrap(),
            rate,
            point["goodput"].as_f64().unwrap(),
        )
    };
    points.iter().map(of).collect()
}

#[test]
fn the_search_finds_the_last_level_that_keeps_the_targets() {
    // Six open at once wait up to 245 ms, seven 285.
    let json = measure(
        &crowded(),
        &["--requests", "8", "--slo", "ttft=265ms,tpot=1s"],
    );
    let found = json["findings"][0]["highest_within_slo"].as_u64().unwrap();
    let levels = levels(&json);
    assert!((4..=6).contains(&found), "{found} of {levels:?}");
    let (_, rate, good) = levels.iter().find(|(level, ..)| *level == found).unwrap();
    assert!(
        (good / rate - 1.0).abs() < 0.06,
        "what is kept is good: {levels:?}"
    );
    let (_, rate, good) = levels.iter().find(|(level, ..)| *level == 8).unwrap();
    assert!(*good < rate * 0.95, "what is missed is not: {levels:?}");
    assert!(
        levels.iter().all(|(level, ..)| *level <= 8),
        "no more load once it is missed: {levels:?}"
    );
    let words = json["findings"][0]["words"].to_string();
    let said = format!(
        "{found} at once is the highest concurrency measured that keeps the latency targets"
    );
    assert!(words.contains(&said), "{words}");
}

#[test]
fn the_knee_is_named() {
    // At n at once a request takes 83 + 40 n ms: doubling brings 11 % from eight, 6 % from sixteen and 3 % from thirty-two on.
    let json = measure(
        &crowded(),
        &["--concurrency", "8,16,32,64", "--requests", "128"],
    );
    let finding = &json["findings"][0];
    let knee = finding["saturated_at"].as_u64();
    assert!(matches!(knee, Some(16 | 32)), "{finding:#}");
    assert!(
        finding["words"].to_string().contains("saturated at"),
        "{finding:#}"
    );
}

#[test]
fn a_server_that_slows_down_over_the_run_is_found_out() {
    let server = Server::start(Manner {
        slower_after: Some(21),
        ..Manner::default()
    });
    let mut job = job(
        &server.url(),
        Kind::Sglang,
        vec![cell(200, 40, 2, 8), cell(200, 40, 4, 12)],
    );
    job.options.repeat_first = true;
    let points = points(&events(job));
    let last = points.last().unwrap();
    assert!(last.repeat && points.len() == 3);
    assert_eq!(last.validity, Validity::Suspect, "{}", reasons(last));
    assert!(
        reasons(last).contains("drifts, so compare levels with care"),
        "{}",
        reasons(last)
    );
}
