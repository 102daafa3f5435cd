//! Health, facts, models, metrics, tokens.

use super::generate::{Message, chat_ids, turns};
use super::refuse::bad_request;
use super::{MODEL, Rig, VERSION};
use crate::clock::unix_ms;
use crate::sim::core::State as Work;
use crate::sim::memory::{KV_BYTES_PER_TOKEN, POOL_TOKENS};
use crate::sim::timing::MAX_RUNNING;
use crate::units::GIB;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What speculative decoding brings on the rig, tokens a step.
const ACCEPT_LENGTH: f64 = 2.9;

/// 503 with an empty body until ready.
pub async fn health(State(rig): State<Arc<Rig>>) -> StatusCode {
    if rig.is_ready() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

pub async fn not_found() -> Response {
    (StatusCode::NOT_FOUND, Json(json!({"detail": "Not Found"}))).into_response()
}

pub async fn server_info(State(rig): State<Arc<Rig>>) -> Json<Value> {
    Json(json!({
        "simulated": true,
        "model_path": "Qwen/Qwen3.6-27B",
        "tokenizer_path": "Qwen/Qwen3.6-27B",
        "served_model_name": MODEL,
        "host": rig.args.host,
        "port": rig.args.port,
        "dtype": "bfloat16",
        "kv_cache_dtype": "auto",
        "context_length": rig.args.served(),
        "mem_fraction_static": 0.85,
        "max_running_requests": MAX_RUNNING,
        "chunked_prefill_size": 4096,
        "max_prefill_tokens": 16384,
        "tp_size": 2,
        "dp_size": 1,
        "speculative_algorithm": "NEXTN",
        "speculative_num_draft_tokens": 4,
        "enable_metrics": true,
        "max_total_num_tokens": POOL_TOKENS,
        "max_req_input_len": rig.max_input(),
        "version": VERSION,
    }))
}

pub async fn model_info() -> Json<Value> {
    Json(json!({
        "model_path": "Qwen/Qwen3.6-27B",
        "tokenizer_path": "Qwen/Qwen3.6-27B",
        "served_model_name": MODEL,
        "is_generation": true,
        "weight_version": "default",
        "simulated": true,
    }))
}

pub async fn models(State(rig): State<Arc<Rig>>) -> Json<Value> {
    Json(json!({
        "object": "list",
        "data": [{
            "id": MODEL,
            "object": "model",
            "created": unix_ms() / 1000,
            "owned_by": "sglang",
            "root": MODEL,
            "parent": null,
            "max_model_len": rig.args.served(),
        }],
    }))
}

#[derive(Debug, Deserialize)]
struct Tokenize {
    prompt: Option<String>,
    messages: Option<Vec<Message>>,
}

/// The ids of a text or a conversation. `max_model_len` is the model's own limit, as with the real server.
pub async fn tokenize(State(rig): State<Arc<Rig>>, body: Bytes) -> Response {
    let ask: Tokenize = match serde_json::from_slice(&body) {
        Ok(ask) => ask,
        Err(error) => return bad_request(&format!("1 validation error:\n  {error}")),
    };
    let ids = match (ask.prompt, ask.messages) {
        (Some(text), _) => rig.tokenizer.encode(&text),
        (None, Some(messages)) => chat_ids(&rig, &turns(messages)),
        (None, None) => {
            return bad_request(
                "1 validation error:\n  {'type': 'missing', 'loc': ('body', 'prompt'), 'msg': 'Field required'}",
            );
        }
    };
    Json(json!({"count": ids.len(), "tokens": ids, "max_model_len": rig.args.max_context}))
        .into_response()
}

pub async fn metrics(State(rig): State<Arc<Rig>>) -> Response {
    let work = rig.state();
    let rate = rig.rate.load(Ordering::Relaxed);
    let accept = match &rig.raw {
        _ if work.decoding == 0 => 0.0,
        Some(raw) => f64::from(raw.manner.tokens_per_chunk),
        None => ACCEPT_LENGTH,
    };
    let text = metrics_text(&work, rate, accept, rig.args.served());
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text,
    )
        .into_response()
}

fn metrics_text(work: &Work, rate: u64, accept: f64, context: u64) -> String {
    let labels = format!(
        "{{engine_type=\"unified\",model_name=\"{MODEL}\",moe_ep_rank=\"0\",pp_rank=\"0\",tp_rank=\"0\"}}"
    );
    let short = format!("{{engine_type=\"unified\",model_name=\"{MODEL}\"}}");
    let counters = work.counters;
    let usage = work.used_tokens as f64 / POOL_TOKENS as f64;
    let hit_rate = counters.cached_tokens as f64 / counters.prompt_tokens.max(1) as f64;
    let running = (work.prefilling + work.decoding) as f64;
    let gauges = [
        (
            "num_running_reqs",
            "The number of running requests.",
            running,
        ),
        (
            "num_queue_reqs",
            "The number of requests in the waiting queue.",
            work.waiting as f64,
        ),
        (
            "num_retracted_reqs",
            "The number of retracted requests.",
            0.0,
        ),
        ("token_usage", "The token usage.", usage),
        (
            "full_token_usage",
            "The token usage for full attention layers.",
            usage,
        ),
        (
            "num_used_tokens",
            "The number of used tokens.",
            work.used_tokens as f64,
        ),
        (
            "kv_used_tokens",
            "KV tokens in use.",
            work.used_tokens as f64,
        ),
        (
            "kv_available_tokens",
            "KV tokens that are free.",
            POOL_TOKENS.saturating_sub(work.used_tokens) as f64,
        ),
        (
            "gen_throughput",
            "The generation throughput (token/s).",
            rate as f64,
        ),
        ("cache_hit_rate", "The prefix cache hit rate.", hit_rate),
        (
            "spec_accept_length",
            "The average acceptance length of speculative decoding.",
            accept,
        ),
        (
            "max_total_num_tokens",
            "Maximum total number of tokens in the KV cache pool.",
            POOL_TOKENS as f64,
        ),
        ("context_len", "The context length.", context as f64),
        ("page_size", "The page size of the KV cache.", 1.0),
        (
            "kv_cache_memory_usage_gb",
            "KV cache memory (GB).",
            (POOL_TOKENS * KV_BYTES_PER_TOKEN) as f64 / GIB,
        ),
    ];
    let totals = [
        (
            "prompt_tokens_total",
            "Number of prefill tokens processed.",
            counters.prompt_tokens as f64,
        ),
        (
            "generation_tokens_total",
            "Number of generation tokens processed.",
            counters.output_tokens as f64,
        ),
        (
            "cached_tokens_total",
            "Number of cached prompt tokens.",
            counters.cached_tokens as f64,
        ),
        (
            "num_requests_total",
            "Number of requests processed.",
            counters.requests as f64,
        ),
    ];
    let mut out = String::from("# SIMULATED by vramp sim\n");
    // Writing to a string cannot fail.
    for (name, help, value) in gauges {
        let _ = writeln!(
            out,
            "# HELP sglang:{name} {help}\n# TYPE sglang:{name} gauge\nsglang:{name}{labels} {value:?}"
        );
    }
    for (name, help, value) in totals {
        let _ = writeln!(
            out,
            "# HELP sglang:{name} {help}\n# TYPE sglang:{name} counter\nsglang:{name}{short} {value:?}"
        );
    }
    let name = "time_to_first_token_seconds";
    let _ = writeln!(
        out,
        "# HELP sglang:{name} Histogram of time to first token in seconds.\n# TYPE sglang:{name} histogram\nsglang:{name}_sum{short} {:?}\nsglang:{name}_bucket{{engine_type=\"unified\",le=\"+Inf\",model_name=\"{MODEL}\"}} {1:?}\nsglang:{name}_count{short} {1:?}",
        counters.ttft_s, counters.first_tokens as f64,
    );
    out
}
