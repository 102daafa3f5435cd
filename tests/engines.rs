//! Engines against answers that real servers gave, replayed byte by byte over real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::http;
use tokio::net::TcpListener;
use vramp::engine::{Endpoint, EngineError, Health, Key, Kind, detect};
use vramp::reading::Reading;

fn fixture(path: &str) -> Vec<u8> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/engine")
        .join(path);
    std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// A captured answer. Folder names in it were shortened after the capture, so its length header does not hold; the answer ends with
/// the connection instead.
fn captured(path: &str) -> Vec<u8> {
    let bytes = fixture(path);
    let end = bytes
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .expect("a head");
    let head: String = String::from_utf8_lossy(&bytes[..end + 2])
        .split_inclusive("\r\n")
        .filter(|line| !line.to_ascii_lowercase().starts_with("content-length:"))
        .collect();
    [head.as_bytes(), &bytes[end + 2..]].concat()
}

fn raw(status: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    out.extend_from_slice(body);
    out
}

fn json(body: &str) -> Vec<u8> {
    raw("200 OK", "application/json", body.as_bytes())
}

/// Answers each path with the bytes given for it, and everything else with `rest`.
fn replay(pages: Vec<(&str, Vec<u8>)>, rest: Vec<u8>) -> Endpoint {
    let pages: HashMap<String, Vec<u8>> = pages
        .into_iter()
        .map(|(path, bytes)| (path.to_string(), bytes))
        .collect();
    let port = http::answering(move |path| pages.get(path).unwrap_or(&rest).clone());
    endpoint(format!("http://127.0.0.1:{port}"))
}

fn endpoint(url: String) -> Endpoint {
    Endpoint {
        url,
        model: None,
        key: None,
        kind: None,
    }
}

fn not_found() -> Vec<u8> {
    captured("sglang/404.http")
}

#[tokio::test]
async fn a_real_sglang_is_found_and_read() {
    let server = replay(
        vec![
            ("/v1/models", captured("sglang/v1_models-idle.http")),
            ("/server_info", captured("sglang/server_info-idle.http")),
            ("/ready", captured("sglang/ready-idle.http")),
            ("/tokenize", captured("sglang/tokenize.http")),
            ("/metrics", captured("sglang/metrics-after.http")),
            (
                "/v1/chat/completions",
                captured("sglang/chat-nonstream.http"),
            ),
        ],
        not_found(),
    );
    let engine = detect(&server).await.expect("found");
    assert_eq!(engine.kind(), Kind::Sglang);
    let facts = engine.facts().await.expect("facts");
    assert_eq!(facts.version, Reading::Value("0.5.23".into()));
    assert_eq!(facts.model, Reading::Value("tiny".into()));
    assert_eq!(facts.health, Health::Up);
    assert!(!facts.simulated);
    assert_eq!(facts.context.configured, Reading::Value(8192));
    assert_eq!(facts.context.effective, Reading::Value(8192));
    assert_eq!(facts.context.model_limit, Reading::Value(524_288));
    assert_eq!(facts.context.pool_tokens, Reading::Value(65_536));
    assert_eq!(facts.context.capacity(), Some(8.0));
    assert!(facts.notes.is_empty(), "{:?}", facts.notes);
    let load = engine.load().await.expect("load");
    assert_eq!(load.running, Reading::Value(0));
    assert_eq!(load.waiting, Reading::Value(0));
    assert!(
        load.generation_tokens_total
            .known()
            .is_some_and(|n| *n > 2000)
    );
    assert!(load.accept_length.known().is_none(), "no speculation");
    let probe = engine.probe().await.expect("token");
    assert_eq!(probe.output_tokens, 8);
    assert_eq!(probe.finish_reason.as_deref(), Some("length"));
    assert_eq!(engine.expected_context(65_536, 1), 65_536);
}

#[tokio::test]
async fn sglang_without_metrics_still_counts_its_requests() {
    let mut server = replay(
        vec![("/v1/loads", captured("sglang/v1_loads-idle.http"))],
        not_found(),
    );
    server.kind = Some(Kind::Sglang);
    let load = detect(&server)
        .await
        .expect("engine")
        .load()
        .await
        .expect("load");
    assert_eq!(load.running, Reading::Value(0));
    assert_eq!(load.waiting, Reading::Value(0));
    let why = load
        .prompt_tokens_total
        .absent()
        .expect("absent")
        .to_string();
    assert!(why.contains("--enable-metrics"), "{why}");
}

#[tokio::test]
async fn a_real_vllm_is_found_and_read() {
    let server = replay(
        vec![
            ("/v1/models", captured("vllm/v1_models-idle.http")),
            ("/version", captured("vllm/version-idle.http")),
            ("/health", captured("vllm/health-idle.http")),
            ("/metrics", captured("vllm/metrics-after-ngram-spec.http")),
            ("/v1/chat/completions", captured("vllm/chat-nonstream.http")),
        ],
        not_found(),
    );
    let engine = detect(&server).await.expect("found");
    assert_eq!(engine.kind(), Kind::Vllm);
    let facts = engine.facts().await.expect("facts");
    assert_eq!(facts.version, Reading::Value("0.32.0".into()));
    assert_eq!(facts.context.effective, Reading::Value(8192));
    assert_eq!(facts.context.pool_tokens, Reading::Value(262_144));
    let load = engine.load().await.expect("load");
    assert_eq!(load.running, Reading::Value(0));
    assert!(
        load.generation_tokens_total
            .known()
            .is_some_and(|n| *n > 2000)
    );
    let length = *load.accept_length.known().expect("speculation");
    assert!((1.0..5.0).contains(&length), "{length}");
    assert!(engine.probe().await.is_ok());
}

#[tokio::test]
async fn a_real_llama_server_is_found_and_read() {
    let server = replay(
        vec![
            ("/v1/models", captured("llama-server/v1_models-idle.http")),
            ("/props", captured("llama-server/props-idle.http")),
            ("/slots", captured("llama-server/slots-busy.http")),
            ("/metrics", captured("llama-server/metrics-busy.http")),
            (
                "/v1/chat/completions",
                captured("llama-server/chat-nonstream.http"),
            ),
        ],
        captured("llama-server/404.http"),
    );
    let engine = detect(&server).await.expect("found");
    assert_eq!(engine.kind(), Kind::LlamaCpp);
    let facts = engine.facts().await.expect("facts");
    assert_eq!(facts.version, Reading::Value("b1-571d0d5".into()));
    assert_eq!(facts.model, Reading::Value("smollm2-135m".into()));
    assert_eq!(facts.context.effective, Reading::Value(2048));
    assert_eq!(facts.context.model_limit, Reading::Value(8192));
    assert_eq!(facts.context.slots, Reading::Value(4));
    assert_eq!(facts.context.pool_tokens, Reading::Value(8192));
    assert!(facts.context.configured.known().is_none());
    let load = engine.load().await.expect("load");
    assert_eq!(load.running, Reading::Value(1));
    assert_eq!(load.generation_tokens_total, Reading::Value(69));
    let kv = *load.kv_use.known().expect("slots");
    assert!((0.01..0.1).contains(&kv), "{kv}");
    let probe = engine.ask("Hello?", 16).await.expect("token");
    assert_eq!(probe.text, "Hi, welcome to my chat!");
}

#[tokio::test]
async fn a_slot_tells_more_than_the_list() {
    let case = |name| json(&String::from_utf8(fixture(name)).expect("text"));
    let server = replay(
        vec![
            ("/v1/models", case("cases/mod-01.models.json")),
            ("/props", case("cases/mod-01.props.json")),
        ],
        not_found(),
    );
    let facts = detect(&server)
        .await
        .expect("found")
        .facts()
        .await
        .expect("facts");
    assert_eq!(facts.kind, Kind::LlamaCpp);
    assert_eq!(facts.model, Reading::Value("qwen-27b.gguf".into()));
    assert_eq!(facts.context.model_limit, Reading::Value(262_144));
    assert_eq!(facts.context.effective, Reading::Value(32_768));
    assert_eq!(facts.context.slots, Reading::Value(4));
}

#[tokio::test]
async fn the_base_models_context_counts_not_the_adapters() {
    let models = json(&String::from_utf8(fixture("cases/mod-02.models.json")).expect("text"));
    let prom = raw("200 OK", "text/plain", &fixture("cases/met-01.prom"));
    let server = replay(
        vec![
            ("/v1/models", models),
            ("/metrics", prom),
            ("/health", raw("200 OK", "text/plain", b"")),
        ],
        not_found(),
    );
    let engine = detect(&server).await.expect("found");
    let facts = engine.facts().await.expect("facts");
    assert_eq!(facts.model, Reading::Value("base".into()));
    assert_eq!(facts.context.effective, Reading::Value(65_536));
    let load = engine.load().await.expect("load");
    assert_eq!(load.kv_use, Reading::Value(0.8125));
    assert_eq!(load.running, Reading::Value(23));
    assert_eq!(load.waiting, Reading::Value(3));
    assert_eq!(load.preemptions_total, Reading::Value(2));
    assert_eq!(load.generation_tokens_total, Reading::Value(2_234_567));
}

#[tokio::test]
async fn ranks_of_one_engine_are_not_added() {
    let mut server = replay(
        vec![(
            "/metrics",
            raw("200 OK", "text/plain", &fixture("cases/met-02.prom")),
        )],
        not_found(),
    );
    server.kind = Some(Kind::Sglang);
    let load = detect(&server)
        .await
        .expect("engine")
        .load()
        .await
        .expect("load");
    assert_eq!(load.running, Reading::Value(8));
    assert_eq!(load.waiting, Reading::Value(92));
    assert_eq!(load.kv_use, Reading::Value(0.35));
    assert_eq!(load.accept_length, Reading::Value(2.9));
}

#[tokio::test]
async fn a_pool_below_the_context_bounds_it_and_is_named() {
    let server = replay(
        vec![
            (
                "/v1/models",
                json(
                    r#"{"data":[{"id":"m","owned_by":"sglang","parent":null,"max_model_len":131072}]}"#,
                ),
            ),
            (
                "/get_server_info",
                json(r#"{"version":"0.4.1","context_length":131072,"max_total_num_tokens":65536}"#),
            ),
        ],
        not_found(),
    );
    let facts = detect(&server)
        .await
        .expect("found")
        .facts()
        .await
        .expect("facts");
    assert_eq!(facts.version, Reading::Value("0.4.1".into()));
    assert_eq!(facts.context.configured, Reading::Value(131_072));
    assert_eq!(facts.context.effective, Reading::Value(65_536));
    assert!(facts.notes[0].contains("65,536"), "{:?}", facts.notes);
    assert_eq!(facts.context.model_limit, Reading::unsupported());
}

#[tokio::test]
async fn any_other_server_is_plain_openai() {
    let server = replay(
        vec![(
            "/v1/models",
            json(r#"{"data":[{"id":"gpt","owned_by":"somebody"}]}"#),
        )],
        not_found(),
    );
    let engine = detect(&server).await.expect("found");
    let facts = engine.facts().await.expect("facts");
    assert_eq!(facts.kind, Kind::OpenAi);
    assert!(facts.context.effective.known().is_none());
    assert!(engine.load().await.expect("load").running.known().is_none());
    let error = engine.probe().await.expect_err("no such page");
    assert!(
        matches!(error, EngineError::Status { status: 404, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_web_page_is_no_inference_server() {
    let page = raw(
        "200 OK",
        "text/html",
        b"<!DOCTYPE html><html><head><title>Grafana</title></head></html>",
    );
    let server = replay(vec![], page);
    let error = detect(&server).await.err().expect("strange").to_string();
    assert!(error.contains("HTML page (Grafana)"), "{error}");
    assert!(error.contains("right port"), "{error}");
    let page = raw("404 Not Found", "text/html", b"<html>no</html>");
    let server = replay(vec![], page);
    let error = detect(&server).await.err().expect("strange").to_string();
    assert!(error.contains("right port"), "{error}");
}

#[tokio::test]
async fn a_wrong_key_is_told_with_the_way_to_give_one() {
    let refusal = raw(
        "401 Unauthorized",
        "application/json",
        br#"{"error":{"message":"Invalid API Key"}}"#,
    );
    let mut server = replay(vec![], refusal);
    server.key = Some(Key::new("hush-hush".into()));
    let error = detect(&server).await.err().expect("denied");
    let text = error.to_string();
    assert!(
        text.contains("401") && text.contains("Invalid API Key") && text.contains("key_file"),
        "{text}"
    );
    assert!(
        !format!("{text} {error:?} {server:?}").contains("hush"),
        "the key is shown"
    );
}

#[tokio::test]
async fn nobody_there_and_nobody_answering_are_two_things() {
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        format!("http://{}", listener.local_addr().expect("address"))
    };
    let error = detect(&endpoint(gone)).await.err().expect("refused");
    assert!(matches!(error, EngineError::Refused { .. }), "{error}");
    let error = detect(&endpoint("http://no-such-host.invalid:1".into()))
        .await
        .err()
        .expect("no host");
    assert!(matches!(error, EngineError::Unreachable { .. }), "{error}");
    let mute = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let url = format!("http://{}", mute.local_addr().expect("address"));
    let started = Instant::now();
    let error = detect(&endpoint(url)).await.err().expect("mute");
    assert!(
        matches!(error, EngineError::Timeout { after_s: 8, .. }),
        "{error}"
    );
    assert!(started.elapsed() < Duration::from_secs(12));
}

#[tokio::test]
async fn loading_is_no_failure() {
    let loading = b"HTTP/1.1 503 Service Unavailable\r\nServer: llama.cpp\r\nContent-Type: application/json\r\nContent-Length: 79\r\nConnection: close\r\n\r\n{\"error\":{\"message\":\"Loading model\",\"type\":\"unavailable_error\",\"code\":503}}     ";
    let server = replay(vec![], loading.to_vec());
    let engine = detect(&server).await.expect("the header names it");
    assert_eq!(engine.kind(), Kind::LlamaCpp);
    assert_eq!(engine.facts().await, Err(EngineError::Loading));
    let server = replay(vec![], raw("503 Service Unavailable", "text/plain", b""));
    assert_eq!(detect(&server).await.err(), Some(EngineError::Loading));
}

#[tokio::test]
async fn a_compressed_page_is_read_and_a_broken_one_is_named() {
    // `{"data":[{"id":"m"}]}` by gzip.
    let packed: &[u8] = &[
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff, 0xab, 0x56, 0x4a, 0x49, 0x2c, 0x49, 0x54, 0xb2,
        0x8a, 0xae, 0x56, 0xca, 0x4c, 0x51, 0xb2, 0x52, 0xca, 0x55, 0xaa, 0x8d, 0xad, 5, 0, 0x4d,
        0x41, 0x7e, 0x16, 0x15, 0, 0, 0,
    ];
    let answer = |body: &[u8]| {
        let mut out = format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        )
        .into_bytes();
        out.extend_from_slice(body);
        out
    };
    let mut server = replay(vec![("/v1/models", answer(packed))], not_found());
    server.kind = Some(Kind::OpenAi);
    let facts = detect(&server)
        .await
        .expect("engine")
        .facts()
        .await
        .expect("unpacked");
    assert_eq!(facts.model, Reading::Value("m".into()));
    let mut server = replay(vec![("/v1/models", answer(b"not gzip"))], not_found());
    server.kind = Some(Kind::OpenAi);
    let error = detect(&server)
        .await
        .expect("engine")
        .facts()
        .await
        .expect_err("broken");
    assert!(matches!(error, EngineError::Strange { .. }), "{error}");
}

#[tokio::test]
async fn a_page_without_end_is_cut_off() {
    let head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
    let mut page = head.to_vec();
    page.resize(head.len() + (17 << 20), b' ');
    let server = replay(vec![("/v1/models", page)], not_found());
    let error = detect(&server).await.err().expect("too large").to_string();
    assert!(error.contains("16 MiB"), "{error}");
}
