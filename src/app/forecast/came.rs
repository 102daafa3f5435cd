//! A forecast that was made for a restart, and what came of it.

use super::super::effect::Effect;
use super::super::model::Model;
use super::super::update::save_tried;
use super::figures;
use crate::engine::Kind;
use crate::memory::Record;
use crate::service::Config;

/// A server that has just become ready still takes memory: its cards are compared after so long.
const SETTLES_MS: u64 = 5_000;

/// A forecast whose context is not in service yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Foretold {
    record: Record,
    /// Card and bytes used, before.
    used: Vec<(u32, u64)>,
    /// Bytes of llama.cpp's cache, before, from its log.
    cache: Option<u64>,
}

/// Remembers the forecast for a restart at `to` that begins now.
pub fn remember(model: &mut Model, to: &Config) {
    let made = figures::of(model, to.context, Some(&to.launch)).and_then(Result::ok);
    model.foretold = made
        .zip(model.running_context())
        .map(|(forecast, from)| Foretold {
            record: Record {
                from,
                forecast,
                came: None,
            },
            used: used(model),
            cache: cache(model),
        });
}

/// Sets the forecast beside what came, once the restart's context has served for a moment.
pub fn settle(model: &mut Model) -> Option<Effect> {
    let since = model.rig.serving_since.filter(|_| model.rig.up())?;
    if model.running.is_some() || model.now.since(since) < SETTLES_MS {
        return None;
    }
    let foretold = model.foretold.take()?;
    if model.running_context() != Some(foretold.record.forecast.context) {
        return None;
    }
    let served = model.served()?;
    let mut record = foretold.record;
    record.came = match model.rig.gpus.tightest(model.cards()) {
        Some((card, _)) => {
            let before = foretold.used.iter().find(|(index, _)| *index == card.index);
            let now = card.memory.fresh().map(|memory| memory.used);
            now.zip(before)
                .and_then(|(now, (_, before))| change(*before, now))
        }
        // Without a card the cache lies in the machine's memory, and the logs say how much it takes.
        None => cache(model)
            .zip(foretold.cache)
            .and_then(|(now, before)| change(before, now)),
    };
    model.tried_mut(served).forecast = Some(record);
    Some(save_tried(model, served))
}

fn change(before: u64, now: u64) -> Option<i64> {
    i64::try_from(now)
        .ok()?
        .checked_sub(i64::try_from(before).ok()?)
}

fn used(model: &Model) -> Vec<(u32, u64)> {
    let cards = model.rig.gpus.chosen(model.cards());
    cards
        .filter_map(|card| Some((card.index, card.memory.fresh()?.used)))
        .collect()
}

fn cache(model: &Model) -> Option<u64> {
    let grows = model.rig.facts.as_ref()?.kind == Kind::LlamaCpp;
    let tried = model.tried.get(&model.served()?).filter(|_| grows)?;
    tried.measured?.pool_bytes
}
