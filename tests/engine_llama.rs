//! The llama.cpp engine against a real llama-server. `LLAMA_SERVER` and `LLAMA_MODEL` name the program and a small model; without
//! them the test is left out, and under `CI=true` that is a failure.

#![allow(clippy::expect_used, clippy::panic)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use vramp::engine::start::{Diagnosis, Known, Outcome, Reader};
use vramp::engine::{Endpoint, EngineError, Kind, Phase, detect};
use vramp::reading::Reading;

struct Server {
    child: Child,
    log: tempfile::NamedTempFile,
    endpoint: Endpoint,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program and the model, or `None` where they are not there.
fn installed() -> Option<(String, String)> {
    let found = std::env::var("LLAMA_SERVER")
        .ok()
        .zip(std::env::var("LLAMA_MODEL").ok());
    if found.is_none() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "LLAMA_SERVER and LLAMA_MODEL must be set under CI=true"
        );
        println!("left out: LLAMA_SERVER and LLAMA_MODEL are not set");
    }
    found
}

async fn start(program: &str, model: &str, context: u64, slots: u64, more: &[&str]) -> Server {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .expect("a port")
        .port();
    let log = tempfile::NamedTempFile::new().expect("log");
    let out = log.reopen().expect("log");
    let child = Command::new(program)
        .args(["-m", model, "--ctx-size", &context.to_string()])
        .args(["--parallel", &slots.to_string()])
        .args(["--threads", "1", "--poll", "0", "--metrics", "--slots"])
        .args(["--host", "127.0.0.1", "--port", &port.to_string()])
        .args(more)
        .stdin(Stdio::null())
        .stdout(out.try_clone().expect("log"))
        .stderr(out)
        .spawn()
        .expect("llama-server starts");
    let server = Server {
        child,
        log,
        endpoint: Endpoint {
            url: format!("http://127.0.0.1:{port}"),
            model: None,
            key: None,
            kind: Some(Kind::LlamaCpp),
        },
    };
    let engine = detect(&server.endpoint).await.expect("engine");
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        match engine.facts().await {
            Ok(_) => return server,
            Err(EngineError::Refused { .. } | EngineError::Loading) => {}
            Err(other) => panic!("while loading: {other}"),
        }
        assert!(Instant::now() < deadline, "never ready");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_real_server_serves_what_is_expected_of_it() {
    let Some((program, model)) = installed() else {
        return;
    };
    for (asked, slots) in [(2048, 4), (1000, 1), (1000, 3), (700, 4), (1025, 2)] {
        let server = start(&program, &model, asked * slots, slots, &[]).await;
        let found = detect(&Endpoint {
            kind: None,
            ..server.endpoint.clone()
        })
        .await
        .expect("found");
        assert_eq!(found.kind(), Kind::LlamaCpp);
        let facts = found.facts().await.expect("facts");
        let expected = found.expected_context(asked, slots);
        assert_eq!(
            facts.context.effective,
            Reading::Value(expected),
            "{asked} over {slots} slots"
        );
        assert_eq!(facts.context.slots, Reading::Value(slots));
        assert_eq!(facts.context.model_limit, Reading::Value(8192));
    }
}

#[tokio::test]
async fn a_real_server_answers_refuses_and_tells_its_load() {
    let Some((program, model)) = installed() else {
        return;
    };
    let server = start(&program, &model, 2048, 1, &["-lv", "4"]).await;
    let engine = detect(&server.endpoint).await.expect("engine");
    let probe = engine.probe().await.expect("a token");
    assert!(probe.output_tokens > 0, "{probe:?}");
    let answer = engine.ask("What is the capital of France?", 24).await;
    assert!(!answer.expect("an answer").text.is_empty());
    let refused = engine.ask(&"word ".repeat(3000), 4).await;
    match refused {
        Err(EngineError::OverLimit {
            asked: Some(asked),
            limit: Some(2048),
            ..
        }) => assert!(asked > 2048),
        other => panic!("{other:?}"),
    }
    let load = engine.load().await.expect("load");
    assert_eq!(load.running, Reading::Value(0));
    assert!(load.generation_tokens_total.known().is_some_and(|n| *n > 8));
    assert_eq!(load.kv_use, Reading::Value(0.0));
    let told = told(&server);
    assert_eq!(told.outcome, Outcome::Ready, "{told:?}");
    assert_eq!(told.phase, Some(Phase::Listening));
    assert_eq!(told.facts.effective_context_per_request, Some(2048));
    assert_eq!(told.facts.kv_pool_tokens, Some(2048));
}

#[tokio::test]
async fn a_context_above_the_models_is_seen_as_what_it_becomes() {
    let Some((program, model)) = installed() else {
        return;
    };
    let server = start(&program, &model, 32_768, 1, &[]).await;
    let engine = detect(&server.endpoint).await.expect("engine");
    let facts = engine.facts().await.expect("facts");
    assert_eq!(facts.context.effective, Reading::Value(8192));
    assert_ne!(engine.expected_context(32_768, 1), 8192);
    let told = told(&server);
    assert_eq!(told.suggested_context, Some(8192), "{told:?}");
}

fn told(server: &Server) -> Diagnosis {
    let bytes = std::fs::read(server.log.path()).expect("log");
    let mut reader = Reader::new(Some(Kind::LlamaCpp));
    for line in String::from_utf8_lossy(&bytes).lines() {
        reader.read(line);
    }
    reader.diagnose(&Known::default())
}
