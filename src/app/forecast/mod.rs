//! What a context length will cost, as far as it is known, and how sure that is.

mod came;
mod figures;

pub use came::{Foretold, SETTLES_MS, remember, settle};
pub use figures::{of, running};

use super::model::{Model, Tried, TriedOutcome};
use crate::memory::{Bytes, Forecast};
use crate::profile::Launch;
use crate::ramp::{Purpose, RestartPlan};
use crate::units::{GIB, gib, mm_ss, thousands};

/// Cards that a forecast names one by one, the tightest first.
const NAMED_CARDS: usize = 3;

/// What to expect at `context` with `launch`, or with that of the running server; one sentence a line.
pub fn lines(model: &Model, context: u64, launch: Option<&Launch>) -> Vec<String> {
    let mut lines = Vec::new();
    let same = |tried: &Tried| match (launch, &tried.config) {
        (Some(launch), Some(config)) => config.launch == *launch,
        _ => true,
    };
    if let Some(tried) = model.tried.get(&context).filter(|tried| same(tried))
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
        lines.extend(last(model));
        return lines;
    }
    match of(model, context, launch) {
        Some(Ok(forecast)) => figures_in_words(model, &forecast),
        Some(Err(why)) => {
            lines.extend(plain(model, context));
            lines.push(format!("not from the model itself: {why}"));
            lines
        }
        None => plain(model, context),
    }
}

/// How the last forecast turned out that led to what serves now.
pub fn last(model: &Model) -> Option<String> {
    let tried = model.tried.get(&model.served()?)?;
    tried.forecast.as_ref()?.words()
}

/// GiB with a sign, with a second decimal where there is little.
fn signed(bytes: i64) -> String {
    let size = bytes as f64 / GIB;
    if size.abs() < 0.1 {
        format!("{size:+.2}")
    } else {
        format!("{size:+.1}")
    }
}

fn figures_in_words(model: &Model, forecast: &Forecast) -> Vec<String> {
    let mut lines = Vec::new();
    match forecast.change {
        Some(change) if forecast.off_cards => lines.push(format!(
            "memory: {} of the machine's own; the launch keeps the cache off the cards",
            by(change)
        )),
        Some(change) => lines.extend(on_cards(model, change)),
        None => {}
    }
    lines.push(match forecast.capacity_after {
        Some(after) => capacity(forecast, after),
        None if forecast.anew => {
            "capacity: unknown until it runs: the arguments change, and with them the pool".into()
        }
        None => "capacity: unknown, the server does not say its pool and no card is read".into(),
    });
    let bound = forecast.bounds;
    let by = if forecast.effective == forecast.context {
        ""
    } else if bound.pool == Some(forecast.effective) {
        ", what the pool holds"
    } else if bound.model_limit == Some(forecast.effective) {
        ", the model's own limit"
    } else {
        ""
    };
    lines.push(format!(
        "effective context: {}{by}",
        thousands(forecast.effective)
    ));
    lines.extend(forecast.calibration.map(|found| found.words()));
    lines.extend(last(model));
    lines
}

fn capacity(forecast: &Forecast, after: f64) -> String {
    let before = forecast.capacity_before;
    let before = before.map_or(String::new(), |before| format!("{before:.1} x → "));
    let within = |share: f64| {
        if share == 0.0 {
            String::new()
        } else {
            format!(" (± {:.0} %)", share * 100.0)
        }
    };
    let slots = if after > 1.0 { ", one a slot" } else { "" };
    let from = match (forecast.room, forecast.bounds.slot_share) {
        (Some((room, error)), _) => {
            format!("{slots}; the card has room for {room:.1}{}", within(error))
        }
        (None, Some(_)) => slots.to_string(),
        (None, None) => match forecast.bounds.pool.filter(|_| forecast.measured) {
            Some(pool) => format!(", from the present pool of {} tokens", thousands(pool)),
            None => String::new(),
        },
    };
    let error = within(forecast.capacity_error);
    format!("capacity: {before}{after:.1} x full-length requests{error}{from}")
}

/// A change of memory and how sure it is.
fn by(change: Bytes) -> String {
    format!(
        "{} GiB (± {:.2})",
        signed(change.bytes),
        change.plus_minus as f64 / GIB
    )
}

/// What becomes of each card, the tightest first.
fn on_cards(model: &Model, change: Bytes) -> Vec<String> {
    let mut cards: Vec<(u32, u64)> = model
        .rig
        .gpus
        .chosen(model.cards())
        .filter_map(|card| Some((card.index, card.memory.fresh()?.free)))
        .collect();
    cards.sort_by_key(|(_, free)| *free);
    let by = by(change);
    if cards.is_empty() {
        return vec![format!("memory: {by}; no card is read")];
    }
    let more = cards.len().saturating_sub(NAMED_CARDS);
    let mut lines: Vec<String> = cards
        .iter()
        .take(NAMED_CARDS)
        .map(|(index, free)| {
            let then = *free as f64 / GIB - change.bytes as f64 / GIB;
            format!("card {index}: {by}, free {} → {then:.1} GiB", gib(*free))
        })
        .collect();
    if more > 0 {
        lines.push(format!("{more} cards more, each with more room"));
    }
    lines
}

/// What the engine alone tells, without the model.
fn plain(model: &Model, context: u64) -> Vec<String> {
    let mut lines = Vec::new();
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

/// What about `context` with `launch` should make the operator think.
pub fn doubts(model: &Model, context: u64, launch: Option<&Launch>) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(tried) = model.tried.get(&context)
        && let TriedOutcome::Failed(why) = &tried.outcome
    {
        warnings.push(format!("{} failed before: {why}", thousands(context)));
    }
    if let Some(Ok(forecast)) = of(model, context, launch) {
        warnings.extend(forecast.warnings);
    } else if let Some(facts) = &model.rig.facts {
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
    warnings
}

/// What should make the operator think before saying yes.
pub fn warnings(model: &Model, plan: &RestartPlan) -> Vec<String> {
    let mut warnings = doubts(model, plan.to.context, Some(&plan.to.launch));
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
