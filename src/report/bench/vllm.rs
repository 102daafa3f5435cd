//! A point as `vllm bench serve --save-result` writes it, so that notebooks made for that read it.

use super::RunReport;
use crate::bench::plan::Arrivals;
use crate::bench::point::{Point, RequestRecord, Summary};
use serde_json::{Map, Value, json};

/// One document of a point and its requests. Figures that vramp does not keep (gaps and texts of single requests) are not in it.
pub fn vllm(run: &RunReport, point: &Point, requests: &[RequestRecord]) -> Value {
    let row = &run.row;
    let seconds = point
        .steady_s
        .unwrap_or((point.ended_unix_ms - point.started_unix_ms) as f64 / 1000.0);
    let total_tok_s = point
        .requests_s
        .map(|rate| rate * (point.cell.input + point.cell.output) as f64);
    let date = jiff::Timestamp::from_millisecond(point.started_unix_ms).map_or_else(
        |_| String::new(),
        |at| at.strftime("%Y%m%d-%H%M%S").to_string(),
    );
    let mut all = Map::new();
    let mut add = |name: &str, value: Value| {
        all.insert(name.to_string(), value);
    };
    add("date", json!(date));
    add("endpoint_type", json!("openai"));
    add("backend", json!("openai"));
    add("label", json!(row.name));
    add("model_id", json!(row.model));
    add("tokenizer_id", json!(row.model));
    add("num_prompts", json!(point.total));
    add(
        "request_rate",
        point
            .cell
            .arrivals
            .rate()
            .map_or(json!("inf"), |rate| json!(rate.per_second())),
    );
    let burstiness = match point.cell.arrivals {
        Arrivals::Constant { .. } => json!("inf"),
        Arrivals::Closed | Arrivals::Poisson { .. } => json!(1.0),
    };
    add("burstiness", burstiness);
    add("max_concurrency", json!(point.cell.concurrency));
    add("duration", json!(seconds));
    add("completed", json!(point.ok));
    add("failed", json!(point.failed));
    add("total_input_tokens", json!(point.input_tokens));
    add("total_output_tokens", json!(point.output_tokens));
    add("request_throughput", json!(point.requests_s));
    add("request_goodput", json!(point.goodput));
    add("output_throughput", json!(point.output_tok_s));
    add("total_token_throughput", json!(total_tok_s));
    add("max_concurrent_requests", json!(point.cell.concurrency));
    let each = |of: &dyn Fn(&RequestRecord) -> Value| requests.iter().map(of).collect::<Vec<_>>();
    add(
        "input_lens",
        json!(each(&|r| json!(r.input_tokens.unwrap_or(point.cell.input)))),
    );
    add(
        "output_lens",
        json!(each(&|r| json!(r.output_tokens.unwrap_or(0)))),
    );
    add(
        "ttfts",
        json!(each(&|r| json!(r.ttft_ms.unwrap_or(0.0) / 1000.0))),
    );
    add("start_times", json!(each(&|r| json!(r.start_ms / 1000.0))));
    let words = |r: &RequestRecord| {
        r.failure
            .as_ref()
            .map_or(String::new(), |f| f.message.clone())
    };
    add("errors", json!(each(&|r| json!(words(r)))));
    for (name, spread, of) in spreads(point) {
        add(&format!("mean_{name}_ms"), json!(spread.mean));
        add(&format!("median_{name}_ms"), json!(spread.p50));
        let deviation = of.and_then(|of| deviation(requests.iter().filter_map(of)));
        add(&format!("std_{name}_ms"), json!(deviation));
        for (part, value) in [
            ("p90", spread.p90),
            ("p95", spread.p95),
            ("p99", spread.p99),
        ] {
            add(&format!("{part}_{name}_ms"), json!(value));
        }
    }
    add("simulated", json!(run.simulated()));
    Value::Object(all)
}

/// Where a request has the figure of a spread.
type Of = fn(&RequestRecord) -> Option<f64>;

fn spreads(point: &Point) -> [(&'static str, &Summary, Option<Of>); 4] {
    [
        ("ttft", &point.ttft_ms, Some(|r| r.ttft_ms)),
        ("tpot", &point.tpot_ms, Some(|r| r.tpot_ms)),
        // The name is theirs: what they measure is the gap between two events.
        ("itl", &point.chunk_gap_ms, None),
        ("e2el", &point.e2e_ms, Some(|r| r.e2e_ms)),
    ]
}

/// The standard deviation of a population, as theirs is.
fn deviation(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    Some((values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt())
}
