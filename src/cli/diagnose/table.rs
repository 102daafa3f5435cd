//! A diagnosis for people.

use crate::engine::start::{Diagnosis, Outcome, StartFacts};
use crate::units::thousands;

/// The whole diagnosis as a few lines of text.
pub fn table(found: &Diagnosis) -> String {
    let engine = found.engine.map_or("server not known", |kind| kind.name());
    let version = found.version.as_deref().unwrap_or("");
    let how = match (found.outcome, found.phase) {
        (Outcome::Ready, _) => "ready".to_string(),
        (outcome, Some(phase)) => format!("{}, {}", word(outcome), phase.words()),
        (outcome, None) => word(outcome).to_string(),
    };
    let mut text = format!("{}: {how}\n", format!("{engine} {version}").trim_end());
    let mut row = |name: &str, value: &str| text.push_str(&format!("  {name:<9}{value}\n"));
    if let Some(cause) = found.cause {
        row("why", cause.words());
    }
    for line in &found.evidence {
        row("line", line);
    }
    if let Some(advice) = &found.advice {
        let name = match found.outcome {
            Outcome::Ready | Outcome::Loading => "note",
            Outcome::Failed | Outcome::Stuck => "do",
        };
        row(name, advice);
    }
    if let Some(tokens) = found.suggested_context {
        row("try", &format!("{} tokens a request", thousands(tokens)));
    }
    for (name, value) in figures(&found.facts) {
        text.push_str(&format!("  {name:<34}{value:>12}\n"));
    }
    text
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ready => "ready",
        Outcome::Failed => "failed",
        Outcome::Loading => "loading",
        Outcome::Stuck => "stuck",
    }
}

/// What the log states, in the order in which it is allocated.
fn figures(facts: &StartFacts) -> Vec<(&'static str, String)> {
    let count = |value: Option<u64>| value.map(thousands);
    let gib = |value: Option<f64>| value.map(|gib| format!("{gib:.2} GiB"));
    [
        ("context asked for, tokens", count(facts.requested_context)),
        (
            "context of one request, tokens",
            count(facts.effective_context_per_request),
        ),
        ("model limit, tokens", count(facts.model_limit)),
        ("KV pool, tokens", count(facts.kv_pool_tokens)),
        ("KV cache", gib(facts.kv_gib)),
        ("KV pool on each card", gib(facts.kv_pool_gib_per_gpu)),
        ("draft's KV on each card", gib(facts.draft_kv_gib_per_gpu)),
        (
            "fixed state on each card",
            gib(facts.fixed_state_gib_per_gpu),
        ),
        (
            "fixed state",
            facts.fixed_state_mib.map(|mib| format!("{mib:.2} MiB")),
        ),
        ("never usable", gib(facts.wasted_gib)),
        ("state slots", count(facts.mamba_slots)),
        ("slots", count(facts.slots)),
        ("requests at once", count(facts.max_running_requests)),
        ("free on each card", gib(facts.free_gib_per_gpu)),
        ("card", facts.device.clone()),
        ("needed", gib(facts.needed_gib)),
        ("available", gib(facts.available_gib)),
        ("free", gib(facts.free_gib)),
        ("total", gib(facts.total_gib)),
        (
            "memory fraction",
            facts.fraction.map(|fraction| fraction.to_string()),
        ),
        ("port", facts.port.map(|port| port.to_string())),
        (
            "without progress",
            facts.after_s.map(|seconds| format!("{seconds:.0} s")),
        ),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}
