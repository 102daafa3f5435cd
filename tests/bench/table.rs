//! The table of right and wrong: what servers do, in words, and the right answer to it. Several clients in use get each of these rows wrong; here the
//! real program measures a server that does just that, eight requests at once, sixteen of a hundred tokens.
//!
//! | the server does | the right answer | test |
//! | --- | --- | --- |
//! | four tokens in each event, 40 ms apart | ITL 10 ms, chunk gap 40 ms | `four_tokens_in_each_event` |
//! | 50 tokens of reasoning first | TTFT 50 ms, 100 tokens | `reasoning_first` |
//! | four events in one TCP segment | median ITL 10 ms | `four_events_in_one_segment` |
//! | stops after 40 of 100 tokens, usage only when asked | 640 tokens | `stops_early` |
//! | usage without being asked | the same as without | `usage_without_being_asked` |
//! | never sends usage | 100 each, marked as estimated | `never_sends_usage` |
//! | the same, with a tokenizer | 100 each, by the tokenizer | `never_sends_usage_but_has_a_tokenizer` |
//! | cuts one in four streams halfway | these failed, and are timed nowhere | `cuts_streams` |
//! | HTTP 500 "CUDA out of memory" | the text reaches the user | `out_of_memory` |
//! | 400 context exceeded, all requests | the text, and an exit status that is not 0 | `context_exceeded` |
//! | pauses 3 s in one of four streams | the stalls are counted, the maximum shows them | `pauses` |

use super::server::{Counts, Manner, Server};
use super::support::bench::Bench;
use super::support::place::Place;
use serde_json::Value;
use std::sync::atomic::Ordering;

/// Exit code and the one point.
fn measure(manner: Manner, engine: &str) -> (Option<i32>, Value, Server) {
    let server = Server::start(manner);
    let bench = Bench {
        place: Place::new(),
        port: server.address.port(),
    };
    let (code, json) = bench.json(&[
        "--model",
        "m",
        "--engine",
        engine,
        "--input",
        "200",
        "--output",
        "100",
        "--concurrency",
        "8",
        "--requests",
        "16",
    ]);
    let points = json["points"].as_array().unwrap();
    assert_eq!(points.len(), 1);
    (code, points[0].clone(), server)
}

/// A first token after 50 ms, then one every 10 ms.
fn plain() -> Manner {
    Manner {
        ttft_ms: 50,
        step_ms: 10,
        ..Manner::default()
    }
}

fn near(value: &Value, want: f64, slack: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - want).abs() <= slack, "{value} for {want}");
}

fn reasons(point: &Value) -> String {
    point["reasons"].to_string()
}

#[test]
fn four_tokens_in_each_event() {
    let manner = Manner {
        tokens_per_event: 4,
        step_ms: 40,
        ..plain()
    };
    let (code, point, _server) = measure(manner, "vllm");
    assert_eq!(code, Some(0), "{point:#}");
    assert_eq!(
        (&point["output_tokens"], &point["tokens_per_chunk"]),
        (&1600.into(), &4.0.into())
    );
    near(&point["itl_ms"]["p50"], 10.0, 0.5);
    near(&point["itl_ms"]["mean"], 10.0, 0.5);
    near(&point["tpot_ms"]["p50"], 9.7, 0.5);
    near(&point["chunk_gap_ms"]["p50"], 40.0, 2.0);
    assert_eq!(point["itl_estimated"], true, "{point:#}");
}

#[test]
fn reasoning_first() {
    let manner = Manner {
        thinking: 50,
        tokenizer: false,
        ..plain()
    };
    let (code, point, _server) = measure(manner, "sglang");
    assert_eq!(code, Some(0), "{point:#}");
    near(&point["ttft_ms"]["p50"], 50.0, 15.0);
    near(&point["first_answer_ms"]["p50"], 550.0, 30.0);
    assert_eq!(point["output_tokens"], 1600);
}

#[test]
fn four_events_in_one_segment() {
    let manner = Manner {
        events_per_write: 4,
        step_ms: 40,
        ..plain()
    };
    let (code, point, _server) = measure(manner, "vllm");
    assert_eq!(code, Some(0), "{point:#}");
    near(&point["itl_ms"]["p50"], 10.0, 0.5);
    assert!(point["itl_ms"]["min"].as_f64().unwrap() > 5.0, "{point:#}");
    near(&point["chunk_gap_ms"]["p50"], 40.0, 2.0);
    assert!(point["client"]["events_per_read"].as_f64().unwrap() > 3.0);
}

#[test]
fn stops_early() {
    let manner = Manner {
        stops_after: Some(40),
        ..plain()
    };
    let (code, point, _server) = measure(manner, "llamacpp");
    assert_eq!(code, Some(0), "{point:#}");
    assert_eq!(
        (&point["output_tokens"], &point["tokens_source"]),
        (&640.into(), &"usage".into())
    );
    near(&point["tpot_ms"]["p50"], 10.0, 0.5);
    assert_eq!(point["validity"], "suspect");
    assert!(
        reasons(&point).contains("16 of 16 answers ended early, the shortest after 40 of 100"),
        "{point:#}"
    );
}

#[test]
fn usage_without_being_asked() {
    let unasked = Manner {
        counts: Counts::Unasked,
        ..plain()
    };
    for (manner, engine) in [
        (plain(), "openai"),
        (unasked.clone(), "openai"),
        (unasked, "vllm"),
    ] {
        let counts = manner.counts;
        let (code, point, _server) = measure(manner, engine);
        assert_eq!(code, Some(0), "{counts:?}: {point:#}");
        assert_eq!(point["requests"]["ok"], 16);
        assert_eq!(
            (&point["output_tokens"], &point["tokens_source"]),
            (&1600.into(), &"usage".into())
        );
        assert_eq!(point["tokens_per_chunk"], 1.0);
        near(&point["ttft_ms"]["p50"], 50.0, 15.0);
        near(&point["itl_ms"]["mean"], 10.0, 0.5);
        near(&point["tpot_ms"]["p50"], 10.0, 0.5);
    }
}

#[test]
fn never_sends_usage() {
    let manner = Manner {
        counts: Counts::Never,
        tokenizer: false,
        ..plain()
    };
    let (code, point, _server) = measure(manner, "openai");
    assert_eq!(code, Some(0), "{point:#}");
    assert_eq!(
        (&point["output_tokens"], &point["tokens_source"]),
        (&1600.into(), &"chunks".into())
    );
    assert_eq!(
        (&point["validity"], &point["cached_share"]),
        (&"suspect".into(), &Value::Null)
    );
    assert!(
        reasons(&point).contains("estimated from the events"),
        "{point:#}"
    );
}

#[test]
fn never_sends_usage_but_has_a_tokenizer() {
    let manner = Manner {
        counts: Counts::Never,
        tokens_per_event: 4,
        step_ms: 40,
        ..plain()
    };
    let (code, point, _server) = measure(manner, "vllm");
    assert_eq!(
        (&point["output_tokens"], &point["tokens_source"]),
        (&1600.into(), &"tokenizer".into()),
        "{point:#}"
    );
    assert_eq!(code, Some(0), "{point:#}");
    near(&point["tpot_ms"]["p50"], 9.7, 0.5);
}

#[test]
fn cuts_streams() {
    let manner = Manner {
        cuts_every: 4,
        ..plain()
    };
    let (code, point, server) = measure(manner, "vllm");
    // The streams by which the server was got to know were numbered too.
    let learning = server.seen.streams.load(Ordering::SeqCst) - 16;
    let cut = (16 + learning) / 4 - learning / 4;
    assert_eq!(code, Some(0), "{point:#}");
    let requests = &point["requests"];
    assert_eq!(
        (&requests["total"], &requests["failed"]),
        (&16.into(), &cut.into())
    );
    assert_eq!(requests["by_kind"]["cut_off"], cut);
    assert_eq!(point["ttft_ms"]["n"], 16 - cut);
    assert_eq!(point["output_tokens"], (16 - cut) * 100);
    assert!(
        reasons(&point).contains("failed: stream ended early"),
        "{point:#}"
    );
}

#[test]
fn out_of_memory() {
    let manner = Manner {
        refuses: Some((
            500,
            r#"{"error":{"message":"CUDA out of memory","code":500}}"#,
        )),
        ..plain()
    };
    let (code, point, _server) = measure(manner, "sglang");
    assert_eq!(
        (code, &point["validity"]),
        (Some(1), &"void".into()),
        "{point:#}"
    );
    assert_eq!(point["requests"]["ok"], 0);
    assert_eq!(
        point["requests"]["messages"]["status_500"],
        "CUDA out of memory"
    );
    assert!(reasons(&point).contains("CUDA out of memory"), "{point:#}");
    assert_eq!(
        (&point["output_tok_s"], &point["decode_tok_s"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(
        (&point["ttft_ms"]["n"], &point["ttft_ms"]["mean"]),
        (&0.into(), &Value::Null)
    );
}

#[test]
fn context_exceeded() {
    let manner = Manner {
        context: 250,
        ..plain()
    };
    let (code, point, _server) = measure(manner, "sglang");
    assert_eq!(
        (code, &point["validity"]),
        (Some(1), &"void".into()),
        "{point:#}"
    );
    let requests = &point["requests"];
    assert!(
        requests["by_kind"]["context_exceeded"].as_u64() >= Some(8),
        "{requests}"
    );
    let message = requests["messages"]["context_exceeded"].as_str().unwrap();
    assert!(message.contains("context length (250 tokens)"), "{message}");
}

#[test]
fn pauses() {
    let manner = Manner {
        stalls_every: 4,
        stall_ms: 3000,
        ..plain()
    };
    let (code, point, server) = measure(manner, "sglang");
    let learning = server.seen.streams.load(Ordering::SeqCst) - 16;
    assert_eq!(code, Some(0), "{point:#}");
    let gap = &point["chunk_gap_ms"];
    assert_eq!(gap["stalls"], (16 + learning) / 4 - learning / 4, "{gap}");
    assert!(gap["max"].as_f64().unwrap() > 2950.0, "{gap}");
    near(&point["itl_ms"]["p50"], 10.0, 0.5);
    assert_eq!(point["requests"]["failed"], 0);
}
