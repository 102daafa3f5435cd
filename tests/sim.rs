//! The simulated rig over real sockets.
#![allow(clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use vramp::engine::{Endpoint, EngineError, Health, Kind, detect};
use vramp::reading::Reading;
use vramp::sim::{Log, RawArgs, SimArgs, UsageFor, serve};

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .expect("a port")
        .port()
}

/// A server on a thread of its own, which ends with the test program. Waits until it is ready.
async fn rig(args: SimArgs) -> (Endpoint, reqwest::Client) {
    let args = SimArgs {
        port: free_port(),
        start_ms: 20,
        ..args
    };
    let url = format!("http://127.0.0.1:{}", args.port);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("runtime");
        let log = Log::new(std::io::sink());
        let _ = runtime.block_on(serve(args, log, std::future::pending()));
    });
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .build()
        .expect("client");
    for _ in 0..500 {
        let answer = client.get(format!("{url}/ready")).send().await;
        if answer.is_ok_and(|a| a.status() == 200) {
            let endpoint = Endpoint {
                url,
                model: None,
                key: None,
                kind: None,
            };
            return (endpoint, client);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never ready");
}

/// A rig that answers at once.
fn fast() -> SimArgs {
    SimArgs {
        ttft_ms: Some(1.0),
        itl_ms: Some(0.1),
        tokens_per_chunk: Some(3),
        ..SimArgs::default()
    }
}

async fn post(at: &(Endpoint, reqwest::Client), path: &str, body: &Value) -> (u16, Value) {
    let answer =
        at.1.post(format!("{}{path}", at.0.url))
            .json(body)
            .send()
            .await
            .expect("answer");
    let status = answer.status().as_u16();
    assert_eq!(answer.headers()["server"], "vramp-sim");
    (status, answer.json().await.unwrap_or(Value::Null))
}

/// The events of a stream with the time of each, in seconds since the request; the last is `[DONE]`.
async fn stream(at: &(Endpoint, reqwest::Client), path: &str, body: &Value) -> Vec<(f64, Value)> {
    let started = Instant::now();
    let mut answer =
        at.1.post(format!("{}{path}", at.0.url))
            .json(body)
            .send()
            .await
            .expect("answer");
    assert_eq!(answer.status(), 200);
    let mut text = String::new();
    let mut events = Vec::new();
    while let Some(chunk) = answer.chunk().await.expect("chunk") {
        text.push_str(std::str::from_utf8(&chunk).expect("whole characters"));
        while let Some((event, rest)) = text.split_once("\n\n") {
            let data = event.strip_prefix("data: ").expect("data");
            let at = started.elapsed().as_secs_f64();
            events.push((at, serde_json::from_str(data).unwrap_or(json!(data))));
            text = rest.to_string();
        }
    }
    assert_eq!(events.pop().expect("events").1, json!("[DONE]"));
    events
}

#[tokio::test]
async fn it_says_what_it_is() {
    let at = rig(SimArgs {
        context_length: 131_072,
        ..fast()
    })
    .await;
    let engine = detect(&at.0).await.expect("found");
    let facts = engine.facts().await.expect("facts");
    assert_eq!(facts.kind, Kind::Sglang);
    assert!(facts.simulated);
    assert_eq!(facts.version, Reading::Value("0.5.11".into()));
    assert_eq!(facts.model, Reading::Value("qwen3.6-27b".into()));
    assert_eq!(facts.health, Health::Up);
    assert_eq!(facts.context.effective, Reading::Value(131_072));
    assert_eq!(facts.context.model_limit, Reading::Value(262_144));
    assert_eq!(facts.context.pool_tokens, Reading::Value(159_744));
    let capacity = facts.context.capacity().expect("capacity");
    assert!((capacity - 1.2).abs() < 0.05, "{capacity}");
    let probe = engine.probe().await.expect("a token");
    assert!(probe.output_tokens > 0 && !probe.text.is_empty());
    assert_eq!(
        engine.ask("What is 6 * 7?", 20).await.expect("answer").text,
        "The answer is 42."
    );
    let load = engine.load().await.expect("load");
    assert_eq!(load.running, Reading::Value(0));
    assert!(load.generation_tokens_total.known().is_some_and(|n| *n > 5));
}

#[tokio::test]
async fn it_may_serve_less_than_asked() {
    let at = rig(SimArgs {
        context_length: 131_072,
        serve_context: Some(65_536),
        ..fast()
    })
    .await;
    let facts = detect(&at.0)
        .await
        .expect("found")
        .facts()
        .await
        .expect("facts");
    assert_eq!(facts.context.effective, Reading::Value(65_536));
    let at = rig(SimArgs {
        context_length: 262_144,
        ..fast()
    })
    .await;
    let facts = detect(&at.0)
        .await
        .expect("found")
        .facts()
        .await
        .expect("facts");
    assert_eq!(
        facts.context.effective,
        Reading::Value(159_744),
        "the pool is smaller"
    );
}

#[tokio::test]
async fn a_stream_counts_its_tokens_exactly() {
    let at = rig(fast()).await;
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Tell me about rivers."}],
        "max_tokens": 100, "ignore_eos": true, "stream": true, "stream_options": {"include_usage": true}});
    let events = stream(&at, "/v1/chat/completions", &body).await;
    assert_eq!(events[0].1["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(events[0].1["choices"][0]["delta"]["content"], "");
    let (_, usage) = events.last().expect("usage");
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"]["completion_tokens"], 100);
    let end = &events[events.len() - 2].1["choices"][0];
    assert_eq!(end["finish_reason"], "length");
    let text: String = events
        .iter()
        .filter_map(|(_, e)| e["choices"][0]["delta"]["content"].as_str())
        .collect();
    let (_, counted) = post(&at, "/tokenize", &json!({"prompt": text})).await;
    assert_eq!(counted["count"], 100, "{text}");
    let contents = events.len() - 3;
    assert_eq!(contents, 1 + 33, "one token, then three in each chunk");
    // The count of the prompt is what the tokenizer says of the conversation.
    let (_, prompt) = post(&at, "/tokenize", &json!({"messages": body["messages"]})).await;
    assert_eq!(usage["usage"]["prompt_tokens"], prompt["count"]);
}

#[tokio::test]
async fn plain_completions_take_ids_and_texts() {
    let at = rig(fast()).await;
    let ids: Vec<u32> = (0..256).collect();
    let ask = |prompt: Value, stream: bool| json!({"model": "m", "prompt": prompt, "max_tokens": 10, "ignore_eos": true, "stream": stream, "stream_options": {"include_usage": stream}});
    let (status, whole) = post(&at, "/v1/completions", &ask(json!(ids), false)).await;
    assert_eq!(status, 200);
    assert_eq!(whole["usage"]["prompt_tokens"], 256);
    assert_eq!(whole["usage"]["completion_tokens"], 10);
    assert_eq!(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    let (_, again) = post(&at, "/v1/completions", &ask(json!([ids]), false)).await;
    assert_eq!(
        again["usage"]["prompt_tokens_details"]["cached_tokens"], 255,
        "the cache has seen it"
    );
    let events = stream(
        &at,
        "/v1/completions",
        &ask(json!("Rivers run to the sea"), true),
    )
    .await;
    let last_text = &events[events.len() - 2].1["choices"][0];
    assert_eq!(last_text["finish_reason"], "length");
    assert_eq!(events[0].1["object"], "text_completion");
    let (status, _) = post(&at, "/v1/completions", &ask(json!(["a", "b"]), false)).await;
    assert_eq!(status, 400);
    let (status, error) = post(&at, "/v1/completions", &json!({"model": "m"})).await;
    assert_eq!((status, error["object"].as_str()), (400, Some("error")));
}

#[tokio::test]
async fn a_hidden_fact_is_found_also_through_ids() {
    let at = rig(SimArgs {
        context_length: 131_072,
        ..fast()
    })
    .await;
    let filler = "Nothing of note happened on that day. ".repeat(5000);
    let text = format!("The code word is KINGFISHER. {filler} What is the code word?");
    let (_, tokens) = post(&at, "/tokenize", &json!({"prompt": text})).await;
    let (_, by_ids) = post(
        &at,
        "/v1/completions",
        &json!({"prompt": tokens["tokens"], "max_tokens": 50}),
    )
    .await;
    assert!(
        by_ids["choices"][0]["text"]
            .as_str()
            .expect("text")
            .contains("KINGFISHER")
    );
    assert_eq!(by_ids["usage"]["prompt_tokens"], tokens["count"]);
    assert_eq!(by_ids["choices"][0]["finish_reason"], "stop");
    let (_, chat) = post(
        &at,
        "/v1/chat/completions",
        &json!({"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]}),
    )
    .await;
    assert!(
        chat["choices"][0]["message"]["content"]
            .as_str()
            .expect("text")
            .contains("KINGFISHER")
    );
}

#[tokio::test]
async fn too_long_is_refused_in_the_real_words() {
    let at = rig(SimArgs {
        context_length: 8192,
        ..fast()
    })
    .await;
    let ids = |n: u32| (0..n).collect::<Vec<u32>>();
    let (status, error) = post(
        &at,
        "/v1/completions",
        &json!({"prompt": ids(8292), "max_tokens": 1, "stream": true}),
    )
    .await;
    assert_eq!(status, 400);
    assert_eq!(
        error["message"],
        "The input (8292 tokens) is longer than the model's context length (8192 tokens)."
    );
    let body = json!({"prompt": ids(8172), "max_tokens": 64});
    let (_, error) = post(&at, "/v1/completions", &body).await;
    assert!(
        error["message"]
            .as_str()
            .expect("words")
            .contains("You requested a total of 8236 tokens")
    );
    let engine = detect(&at.0).await.expect("found");
    let refused = engine
        .ask(&"word ".repeat(9000), 5)
        .await
        .expect_err("too long");
    assert!(
        matches!(
            refused,
            EngineError::OverLimit {
                asked: Some(_),
                limit: Some(8192),
                ..
            }
        ),
        "{refused:?}"
    );
    assert!(engine.probe().await.is_ok(), "it lives on");
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_place() {
    let at = rig(SimArgs::default()).await;
    let body = json!({"messages": [{"role": "user", "content": "Tell me a long story."}], "max_tokens": 4000, "stream": true});
    let whole = json!({"messages": [{"role": "user", "content": "Tell me a long story."}], "max_tokens": 4000});
    let url = format!("{}/v1/chat/completions", at.0.url);
    let mut streaming = at.1.post(&url).json(&body).send().await.expect("stream");
    assert!(streaming.chunk().await.expect("first").is_some());
    let waiting = tokio::spawn(at.1.post(&url).json(&whole).send());
    let engine = detect(&at.0).await.expect("found");
    let running = async |wanted: u64| {
        for _ in 0..200 {
            let load = engine.load().await.expect("load");
            if load.running == Reading::Value(wanted) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    };
    assert!(running(2).await, "both run");
    drop(streaming);
    assert!(running(1).await, "the stream is gone");
    waiting.abort();
    assert!(running(0).await, "so is the other");
}

#[tokio::test]
async fn speeds_are_the_rigs() {
    let at = rig(SimArgs::default()).await;
    let ask = |first: u32| json!({"prompt": std::iter::once(first).chain(1..1000).collect::<Vec<u32>>(), "max_tokens": 200, "ignore_eos": true, "stream": true, "stream_options": {"include_usage": true}});
    let events = stream(&at, "/v1/completions", &ask(5)).await;
    let first = events[0].0;
    let last = events[events.len() - 2].0;
    assert!((0.155..0.2).contains(&first), "first token after {first}");
    let decode = 199.0 / (last - first);
    assert!((decode / 73.6 - 1.0).abs() < 0.03, "{decode} tok/s");
    let chunks = events.len() - 1;
    assert!(
        (2.6..3.2).contains(&(200.0 / chunks as f64)),
        "{chunks} chunks"
    );
    let started = Instant::now();
    let (six, seven) = (ask(6), ask(7));
    let both = tokio::join!(
        stream(&at, "/v1/completions", &six),
        stream(&at, "/v1/completions", &seven)
    );
    let rate = 400.0 / started.elapsed().as_secs_f64();
    assert_eq!(
        both.0.last().expect("usage").1["usage"]["completion_tokens"],
        200
    );
    assert!((rate / 130.0 - 1.0).abs() < 0.06, "{rate} tok/s with two");
}

#[tokio::test]
async fn a_broken_engine_says_one_word() {
    let at = rig(SimArgs {
        loops: true,
        ..fast()
    })
    .await;
    let engine = detect(&at.0).await.expect("found");
    let text = engine.ask("What is 2 + 2?", 30).await.expect("answer").text;
    assert!(text.starts_with(" lambda lambda lambda"), "{text}");
}

#[tokio::test]
async fn a_raw_schedule_keeps_time_and_tells_the_truth() {
    let at = rig(SimArgs {
        ttft_ms: Some(40.0),
        itl_ms: Some(2.5),
        tokens_per_chunk: Some(4),
        raw: RawArgs {
            stall_every: Some(2),
            stall_ms: Some(300.0),
            ..RawArgs::default()
        },
        ..SimArgs::default()
    })
    .await;
    let body = json!({"prompt": [1, 2, 3], "max_tokens": 41, "stream": true, "stream_options": {"include_usage": true, "continuous_usage_stats": true}});
    let first = stream(&at, "/v1/completions", &body).await;
    let second = stream(&at, "/v1/completions", &body).await;
    assert!(first[0].0 >= 0.04, "never early");
    let counts: Vec<u64> = first[..11]
        .iter()
        .filter_map(|(_, event)| event["usage"]["completion_tokens"].as_u64())
        .collect();
    assert_eq!(counts, [1, 5, 9, 13, 17, 21, 25, 29, 33, 37, 41]);
    let texts = |events: &[(f64, Value)]| -> String {
        events
            .iter()
            .filter_map(|(_, event)| event["choices"][0]["text"].as_str())
            .collect()
    };
    assert_ne!(texts(&first), texts(&second), "no two answers are alike");
    let url = format!("{}/stats", at.0.url);
    let asked = at.1.get(format!("{url}?requests=5")).send().await;
    let stats: Value = asked.expect("answer").json().await.expect("json");
    assert_eq!((&stats["done"], &stats["tokens"]), (&json!(2), &json!(82)));
    let requests = stats["requests"].as_array().expect("both");
    let ms = |request: &Value, a: usize, b: usize| {
        let sent = |n: usize| request["sent_ns"][n].as_u64().expect("a stamp");
        (sent(b) - sent(a)) as f64 / 1e6
    };
    for request in requests {
        let sent = request["sent_ns"].as_array().expect("stamps");
        assert_eq!(sent.len(), 11);
        let ttft = request["first_token_ns"].as_u64().expect("a stamp")
            - request["received_ns"].as_u64().expect("a stamp");
        assert!(ttft >= 40_000_000, "{ttft}");
    }
    // The schedule is absolute: whatever one write is late, the next is not.
    assert!(ms(&requests[0], 0, 10) < 100.0 + 60.0);
    assert!((300.0..460.0).contains(&ms(&requests[1], 0, 10)));
    let stalled = stats["chunk_gap_ms"]["max"].as_f64().expect("a gap");
    assert!((300.0..400.0).contains(&stalled), "{stalled}");
    let reset = at.1.post(format!("{url}/reset")).send().await;
    assert_eq!(reset.expect("answer").status(), 200);
    let engine = detect(&at.0).await.expect("found");
    let load = engine.load().await.expect("load");
    assert_eq!(load.running, Reading::Value(0));
}

#[tokio::test]
async fn raw_faults_come_as_asked_for() {
    let at = rig(SimArgs {
        ttft_ms: Some(1.0),
        itl_ms: Some(0.1),
        raw: RawArgs {
            cut_every: Some(3),
            fail_every: Some(2),
            usage: Some(UsageFor::Never),
            answer_tokens: Some(4),
            reasoning_tokens: Some(2),
            ..RawArgs::default()
        },
        ..SimArgs::default()
    })
    .await;
    let body = json!({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 10, "stream": true, "stream_options": {"include_usage": true}});
    let url = format!("{}/v1/chat/completions", at.0.url);
    let events = stream(&at, "/v1/chat/completions", &body).await;
    let thoughts = |event: &Value| event["choices"][0]["delta"]["reasoning_content"].is_string();
    assert_eq!(events.iter().filter(|(_, e)| thoughts(e)).count(), 2);
    assert_eq!(
        events.last().expect("an end").1["choices"][0]["finish_reason"],
        "stop"
    );
    assert_eq!(
        events.len(),
        6,
        "a role, two thoughts, two words, an end, and no usage"
    );
    let (status, error) = post(&at, "/v1/chat/completions", &body).await;
    assert_eq!(status, 500);
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|m| m.contains("out of memory"))
    );
    let cut = at.1.post(&url).json(&body).send().await.expect("a head");
    assert!(cut.text().await.is_err(), "cut off");
    let mut left =
        at.1.post(&url)
            .json(&body)
            .send()
            .await
            .expect("status 500");
    assert_eq!(left.status(), 500);
    assert!(left.chunk().await.is_ok());
}
