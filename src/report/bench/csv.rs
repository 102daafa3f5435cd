//! A run as a table for spreadsheets (RFC 4180): one line a point, one line of names.

use super::{RunReport, kind_word};
use crate::bench::point::{Point, Summary};
use crate::units::clean;

/// The spreads that are written, with their names.
fn spreads(point: &Point) -> [(&'static str, &Summary); 8] {
    [
        ("ttft_ms", &point.ttft_ms),
        ("first_answer_ms", &point.first_answer_ms),
        ("itl_ms", &point.itl_ms),
        ("chunk_gap_ms", &point.chunk_gap_ms),
        ("tpot_ms", &point.tpot_ms),
        ("e2e_ms", &point.e2e_ms),
        ("queue_ms", &point.queue_ms),
        ("client_queue_ms", &point.client_queue_ms),
    ]
}

/// The whole table; empty for a run without points.
pub fn csv(run: &RunReport) -> String {
    let mut out = String::new();
    for (index, point) in run.points.iter().enumerate() {
        let columns = columns(run, point);
        if index == 0 {
            line(columns.iter().map(|(name, _)| name.as_str()), &mut out);
        }
        line(columns.iter().map(|(_, value)| value.as_str()), &mut out);
    }
    out
}

fn columns(run: &RunReport, point: &Point) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::with_capacity(110);
    let mut add = |name: &str, value: String| all.push((name.to_string(), value));
    let row = &run.row;
    let cell = &point.cell;
    add("run", row.id.to_string());
    add("plan", outside(&row.plan));
    add("engine", row.engine.name().to_string());
    add(
        "engine_version",
        outside(row.engine_version.as_deref().unwrap_or_default()),
    );
    add("model", outside(&row.model));
    add("context", or_empty(point.context));
    add("simulated", run.simulated().to_string());
    add("isl", cell.input.to_string());
    add("osl", cell.output.to_string());
    add("concurrency", cell.concurrency.to_string());
    add(
        "rate",
        or_empty(cell.arrivals.rate().map(|rate| rate.per_second())),
    );
    add("requests", point.total.to_string());
    add("ok", point.ok.to_string());
    add("failed", point.failed.to_string());
    let kinds: Vec<String> = point
        .failures
        .iter()
        .map(|(failure, count)| format!("{} {count}", kind_word(&failure.kind)))
        .collect();
    add("failed_by_kind", kinds.join("; "));
    add("input_tokens", point.input_tokens.to_string());
    add("output_tokens", point.output_tokens.to_string());
    add("tokens_per_chunk", or_empty(point.tokens_per_chunk));
    add("output_tok_s", or_empty(point.output_tok_s));
    add("decode_tok_s", or_empty(point.decode_tok_s));
    add("prefill_tok_s", or_empty(point.prefill_tok_s));
    add("requests_s", or_empty(point.requests_s));
    add("goodput", or_empty(point.goodput));
    for (name, spread) in spreads(point) {
        add(&format!("{name}_n"), spread.n.to_string());
        for (part, value) in [
            ("mean", spread.mean),
            ("p50", spread.p50),
            ("p90", spread.p90),
            ("p95", spread.p95),
            ("p99", spread.p99),
            ("min", spread.min),
            ("max", spread.max),
        ] {
            add(&format!("{name}_{part}"), or_empty(value));
        }
    }
    add("stalls", point.stalls.to_string());
    add("cached_share", or_empty(point.cached_share));
    add("client_cpu_share", or_empty(point.client.cpu_share));
    add("client_lag_p99_ms", or_empty(point.client.lag_p99_ms));
    add("running_max", or_empty(point.server_side.running_max));
    add("waiting_max", or_empty(point.server_side.waiting_max));
    add("kv_use_max", or_empty(point.server_side.kv_use_max));
    add(
        "free_min_bytes",
        or_empty(point.cards.iter().map(|card| card.free_min).min()),
    );
    add("validity", point.validity.word().to_string());
    let reasons: Vec<&str> = point.reasons.iter().map(|r| r.text.as_str()).collect();
    add("reasons", outside(&reasons.join("; ")));
    add("partial", point.partial.to_string());
    all
}

fn or_empty<T: ToString>(value: Option<T>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Text from outside: a spreadsheet must not take it for a formula.
fn outside(text: &str) -> String {
    let text = clean(&text.replace('\n', " "));
    if text.starts_with(['=', '+', '-', '@']) {
        format!("'{text}")
    } else {
        text
    }
}

fn line<'a>(values: impl Iterator<Item = &'a str>, out: &mut String) {
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(',');
        }
        if value.contains(['"', ',', '\n', '\r']) {
            out.push('"');
            out.push_str(&value.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(value);
        }
    }
    out.push_str("\r\n");
}
