//! A status for a person.

use super::document::{Document, Unfinished};
use crate::clock::date_time;
use crate::units::{clean, thousands};
use std::fmt::Write as _;

/// One line a fact; what is not known is left out.
pub fn table(seen: &Document) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let _ = writeln!(out, "{name:<12} {}", clean(&value));
        }
    };
    if seen.simulated {
        line(
            "SIMULATED",
            Some("everything below is simulated".to_string()),
        );
    }
    line("server", Some(server(seen)));
    line(
        "ready",
        Some(if seen.ready { "yes" } else { "no" }.to_string()),
    );
    line("context", context(seen));
    line(
        "capacity",
        seen.capacity
            .map(|n| format!("{n:.1} full-length requests")),
    );
    line("requests", requests(seen));
    line("cache", cache(seen));
    line(
        "rate",
        seen.output_tok_s.map(|rate| format!("{rate:.1} tok/s")),
    );
    line("bottleneck", seen.bottleneck.map(str::to_string));
    line("service", seen.service.clone());
    line("production", seen.production.map(thousands));
    line("trial", seen.trial.map(thousands));
    line("deadline", seen.deadline.map(date_time));
    line("unfinished", seen.intent.as_ref().map(unfinished));
    line("lock", seen.lock.clone());
    for note in &seen.notes {
        line("note", Some(note.clone()));
    }
    out
}

fn joined(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn server(seen: &Document) -> String {
    let parts = [
        seen.engine.map(str::to_string),
        seen.version.clone(),
        seen.model.clone(),
        Some(format!("at {}", seen.url)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn context(seen: &Document) -> Option<String> {
    let context = &seen.context;
    let named = |name: &str, value: Option<u64>| Some(format!("{name} {}", thousands(value?)));
    joined([
        context
            .effective
            .map(|n| format!("{} per request", thousands(n))),
        named("configured", context.configured),
        named("model limit", context.model_limit),
        named("pool", context.pool_tokens),
        named("slots", context.slots),
        named("per slot", context.per_slot),
    ])
}

fn requests(seen: &Document) -> Option<String> {
    let named = |value: Option<u64>, name: &str| Some(format!("{} {name}", value?));
    joined([
        named(seen.running, "running"),
        named(seen.waiting, "waiting"),
        named(seen.preemptions, "preempted since its start"),
    ])
}

fn cache(seen: &Document) -> Option<String> {
    let share = |name: &str, value: Option<f64>| Some(format!("{name} {:.0} %", value? * 100.0));
    joined([
        share("KV pool", seen.kv_use),
        share("state", seen.state_use),
        share("prefix hits", seen.prefix_cache_hit_rate),
        seen.accept_length
            .map(|length| format!("{length:.2} tokens accepted a step")),
    ])
}

fn unfinished(intent: &Unfinished) -> String {
    let from = intent.from.map_or("nothing".to_string(), thousands);
    let leg = if intent.back { ", on its way back" } else { "" };
    format!(
        "{from} -> {}, at the step \"{}\"{leg}, by {} since {}",
        thousands(intent.to),
        intent.step,
        intent.by,
        date_time(intent.since)
    )
}
