//! What a context length will cost, as far as it is known, and how sure that is.

use super::model::{Model, TriedOutcome};
use crate::ramp::{Purpose, RestartPlan};
use crate::units::{gib, mm_ss, thousands};

/// What to expect at `context`, one sentence a line.
pub fn lines(model: &Model, context: u64) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(tried) = model.tried.get(&context)
        && tried.outcome == TriedOutcome::Served
        && (tried.capacity.is_some() || tried.tightest.is_some())
    {
        let mut known = Vec::new();
        known.extend(tried.capacity.map(|c| format!("capacity {c:.1} x")));
        known.extend(
            tried
                .tightest
                .map(|(card, free)| format!("lowest free {} GiB on card {card}", gib(free))),
        );
        known.extend(tried.start_ms.map(|ms| format!("start {}", mm_ss(ms))));
        lines.push(format!("measured here before: {}", known.join(", ")));
        return lines;
    }
    let Some(facts) = &model.rig.facts else {
        return lines;
    };
    let served = model.served();
    match facts.kind.memory_grows_with_context() {
        Some(false) => {
            lines.push(
                "memory: about as now, the KV pool is taken at start (estimate, ± 0.3 GiB a card; up to 1 GiB more without a request limit)".into(),
            );
            if let (Some(pool), Some(now)) =
                (facts.context.pool_tokens.known(), facts.context.capacity())
            {
                let then = *pool as f64 / context as f64;
                lines.push(format!(
                    "capacity: {now:.1} x → {then:.1} x full-length requests (estimate, from the present pool of {} tokens)",
                    thousands(*pool)
                ));
            }
        }
        Some(true) => {
            let cards = model.cards().to_vec();
            let grows = served.filter(|s| *s > 0).map(|s| context as f64 / s as f64);
            let mut line = match grows {
                Some(factor) if factor >= 1000.0 => {
                    format!(
                        "memory: the KV cache is {} times what it is now (it grows with the context)",
                        thousands(factor as u64)
                    )
                }
                Some(factor) => format!(
                    "memory: the KV cache is {factor:.2} times what it is now (it grows with the context)"
                ),
                None => "memory: the KV cache grows with the context".to_string(),
            };
            match model.rig.gpus.tightest(&cards) {
                Some((card, free)) => line.push_str(&format!(
                    "; {} GiB are free on card {}",
                    gib(free),
                    card.index
                )),
                None => line.push_str("; no card to read, so how much that is stays unknown"),
            }
            lines.push(line);
        }
        None => lines.push("memory: unknown, this engine does not say".into()),
    }
    lines
}

/// What should make the operator think before saying yes.
pub fn warnings(model: &Model, plan: &RestartPlan) -> Vec<String> {
    let mut warnings = Vec::new();
    let context = plan.to.context;
    if let Some(tried) = model.tried.get(&context)
        && let TriedOutcome::Failed(why) = &tried.outcome
    {
        warnings.push(format!("{} failed before: {why}", thousands(context)));
    }
    if let Some(facts) = &model.rig.facts {
        if let Some(limit) = facts.context.model_limit.known()
            && context > *limit
        {
            warnings.push(format!(
                "above the model's own limit of {}: needs rope scaling, not memory",
                thousands(*limit)
            ));
        }
        if facts.kind.memory_grows_with_context() == Some(false)
            && let Some(pool) = facts.context.pool_tokens.known()
        {
            let fits = *pool as f64 / context as f64;
            if fits < 1.0 {
                warnings.push(format!(
                    "the pool of {} tokens cannot hold one request of {}",
                    thousands(*pool),
                    thousands(context)
                ));
            } else if fits < 2.0 {
                warnings.push(format!(
                    "a context of {} fits {fits:.1} requests at once",
                    thousands(context)
                ));
            }
        }
    }
    if let (Some(seconds), Some(production)) = (plan.deadline_s, plan.production) {
        warnings.push(format!(
            "unless it is kept within {}, {} comes back by itself, also when vramp is gone",
            mm_ss(seconds * 1000),
            thousands(production)
        ));
    }
    match (&plan.on_failure, plan.purpose) {
        (Some(target), _) => warnings.push(format!(
            "if it fails, {} ({}) comes back by itself",
            thousands(target.config.context),
            target.kind.words()
        )),
        (None, Purpose::Start) => {}
        (None, _) => warnings.push("if it fails there is nothing to go back to".into()),
    }
    warnings
}
