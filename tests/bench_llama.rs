//! `vramp bench` against a real llama-server: its figures are those that the server has of itself.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use rustix::process::Signal;
use serde_json::Value;
use support::bench::{Bench, err, signal};
use support::llama::Llama;
use support::place::Place;
use support::server::Server;
use support::{alone, http, secs, until};

struct Rig {
    bench: Bench,
    _server: Server,
}

/// A server with two slots of 1,024 tokens each.
fn rig(test: &str) -> Option<Rig> {
    let llama = Llama::find(test)?;
    let place = Place::new();
    let arguments = |port: &str| {
        let model = llama.model.to_string_lossy();
        let words = format!(
            "--model {model} --ctx-size 2048 --parallel 2 --threads 1 --poll 0 --metrics --slots --host 127.0.0.1 --port {port}"
        );
        words.split(' ').map(str::to_string).collect()
    };
    let server = Server::start(&place, &llama.server, arguments, "/health", secs(120));
    let bench = Bench {
        place,
        port: server.port,
    };
    Some(Rig {
        bench,
        _server: server,
    })
}

impl Rig {
    /// A figure of the server's metrics page.
    fn metric(&self, name: &str) -> f64 {
        let (_, page) = http::get(self.bench.port, "/metrics").unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name}: {page}"))
            .trim()
            .parse()
            .unwrap()
    }
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn the_decode_rate_is_the_servers_own_and_prompts_are_exact() {
    let Some(rig) = rig("bench_llama") else {
        return;
    };
    let _alone = alone();
    let generated = || {
        (
            rig.metric("llamacpp:tokens_predicted_total "),
            rig.metric("llamacpp:tokens_predicted_seconds_total "),
        )
    };
    let before = generated();
    let (code, json) = rig.bench.json(&[
        "--quick",
        "--input",
        "200",
        "--output",
        "64",
        "--concurrency",
        "1",
        "--requests",
        "5",
    ]);
    let after = generated();
    let point = &json["points"][0];
    assert_eq!(code, Some(0), "{point:#}");
    assert_eq!(point["input_tokens"], 5 * 200);
    assert_eq!(
        (&point["output_tokens"], &point["tokens_source"]),
        (&(5 * 64).into(), &"usage".into())
    );
    assert_eq!(point["cached_share"], 0.0);
    assert!(number(&point["prefill_ms"]["mean"]) <= number(&point["ttft_ms"]["mean"]));
    // One answer of two tokens came before, by which the server was got to know. The server's clock of an answer runs from its first
    // token to its last, which is one gap less than it has tokens.
    assert_eq!(after.0 - before.0, 5.0 * 64.0 + 2.0);
    let tpot_s = number(&point["tpot_ms"]["mean"]) / 1e3;
    let theirs = (5.0 * 63.0 + 1.0) / (after.1 - before.1);
    let ours = 1.0 / tpot_s;
    assert!(
        (ours / theirs - 1.0).abs() < 0.02,
        "{ours} tok/s, the server says {theirs}"
    );

    let (_, json) = rig.bench.json(&[
        "--quick",
        "--endpoint",
        "chat",
        "--input",
        "240",
        "--output",
        "8",
        "--concurrency",
        "1",
        "--requests",
        "2",
    ]);
    let point = &json["points"][0];
    let mean = number(&point["input_tokens"]) / 2.0;
    assert!((mean - 240.0).abs() <= 2.0, "{mean} tokens instead of 240");
    assert_ne!(
        point["validity"], "void",
        "the template is no cache hit: {point:#}"
    );
}

#[test]
fn prompts_that_the_server_knows_are_void() {
    let Some(rig) = rig("bench_llama") else {
        return;
    };
    let _alone = alone();
    // One at a time: each finds the slot that has its own prompt.
    let again = [
        "--quick",
        "--input",
        "160",
        "--output",
        "40",
        "--concurrency",
        "1",
        "--requests",
        "1",
        "--seed",
        "3",
    ];
    let (code, first) = rig.bench.json(&again);
    assert_eq!(code, Some(0), "{first:#}");
    let (code, second) = rig.bench.json(&again);
    let point = &second["points"][0];
    assert_eq!(
        (code, &point["validity"]),
        (Some(1), &"void".into()),
        "{point:#}"
    );
    assert!(number(&point["cached_share"]) > 0.9, "{point:#}");
}

#[test]
fn a_killed_run_goes_on_and_an_interrupted_one_is_partial() {
    let Some(rig) = rig("bench_llama") else {
        return;
    };
    let _alone = alone();
    let order = [
        "--quick",
        "--input",
        "48",
        "--output",
        "32",
        "--concurrency",
        "1,2",
        "--requests",
        "10",
        "--json",
        "run.json",
    ];
    let file = rig.bench.place.path().join("run.json");
    let read = || serde_json::from_slice::<Value>(&std::fs::read(&file).ok()?).ok();
    let points = |json: &Value| json["points"].as_array().unwrap().len();
    let mut child = rig.bench.start(&order);
    until("the first level is on disk", secs(240), || {
        read().filter(|json| points(json) == 1)
    });
    let done = rig.metric("llamacpp:tokens_predicted_total ");
    until("the second level is under way", secs(120), || {
        (rig.metric("llamacpp:tokens_predicted_total ") > done + 64.0).then_some(())
    });
    signal(&child, Signal::KILL);
    let _ = child.wait();
    assert_eq!(read().unwrap()["partial"], true);

    // Gone on with, interrupted, and gone on with again.
    let resumed: Vec<&str> = order.iter().copied().chain(["--resume"]).collect();
    let before = rig.metric("llamacpp:tokens_predicted_total ");
    let child = rig.bench.start(&resumed);
    until("it goes on", secs(120), || {
        (rig.metric("llamacpp:tokens_predicted_total ") > before + 2.0).then_some(())
    });
    signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    assert_eq!(read().unwrap()["partial"], true, "{}", err(&output));

    let output = rig.bench.bench(&resumed);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let json = read().unwrap();
    assert_eq!((&json["partial"], points(&json)), (&false.into(), 2));
    for point in json["points"].as_array().unwrap() {
        assert_eq!(
            (&point["requests"]["ok"], &point["output_tokens"]),
            (&10.into(), &(10 * 32).into())
        );
        assert_ne!(point["validity"], "void", "{point:#}");
    }
    assert!(
        json["points"][1]["reasons"]
            .to_string()
            .contains("measured in"),
        "{json:#}"
    );
    let asked = rig.metric("llamacpp:tokens_predicted_total ") - before;
    assert!(
        asked < 10.0 * 32.0,
        "{asked} tokens: what was there was not asked again"
    );
}
