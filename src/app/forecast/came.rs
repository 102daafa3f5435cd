//! A forecast that was made for a restart, and what came of it.

use super::super::effect::Effect;
use super::super::model::Model;
use super::super::update::save_tried;
use super::figures;
use crate::engine::Kind;
use crate::gpu::Snapshot;
use crate::memory::{Measured, Record};
use crate::service::Config;

/// A server that has just become ready still takes memory: its cards are compared after so long.
pub const SETTLES_MS: u64 = 5_000;

/// A forecast whose context is not in service yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Foretold {
    record: Record,
    /// Card and bytes used, before.
    used: Vec<(u32, u64)>,
    /// Bytes of llama.cpp's cache, before, from its log.
    cache: Option<u64>,
}

impl Foretold {
    /// The forecast for a restart at `to` that begins now, with what is used now.
    pub fn of(model: &Model, to: &Config) -> Option<Foretold> {
        let forecast = figures::of(model, to.context, Some(&to.launch))?.ok()?;
        Some(Foretold {
            record: Record {
                from: model.running_context()?,
                forecast,
                came: None,
            },
            used: used(model),
            cache: cache(model),
        })
    }

    /// The context that it is of.
    pub fn context(&self) -> u64 {
        self.record.forecast.context
    }

    /// The forecast beside what came: `gpus` are the cards once the context has served for [`SETTLES_MS`], `cards` are the server's among
    /// them, `measured` is what the log of its start says.
    pub fn came(self, gpus: &Snapshot, cards: &[u32], measured: Option<&Measured>) -> Record {
        let mut record = self.record;
        let card = gpus.tightest(cards).filter(|_| !record.forecast.off_cards);
        record.came = match card {
            Some((card, _)) => {
                let before = self.used.iter().find(|(index, _)| *index == card.index);
                let now = card.memory.fresh().map(|memory| memory.used);
                now.zip(before)
                    .and_then(|(now, (_, before))| change(*before, now))
            }
            // The cache lies in the machine's memory, and the logs say how much it takes.
            None => measured
                .and_then(|measured| measured.pool_bytes)
                .zip(self.cache)
                .and_then(|(now, before)| change(before, now)),
        };
        record
    }
}

/// Remembers the forecast for a restart at `to` that begins now.
pub fn remember(model: &mut Model, to: &Config) {
    model.foretold = Foretold::of(model, to);
}

/// Sets the forecast beside what came, once the restart's context has served for a moment.
pub fn settle(model: &mut Model) -> Option<Effect> {
    let since = model.rig.serving_since.filter(|_| model.rig.up())?;
    if model.running.is_some() || model.now.since(since) < SETTLES_MS {
        return None;
    }
    let foretold = model.foretold.take()?;
    if model.running_context() != Some(foretold.context()) {
        return None;
    }
    let served = model.served()?;
    let measured = model.tried.get(&served).and_then(|tried| tried.measured);
    let record = foretold.came(&model.rig.gpus, model.cards(), measured.as_ref());
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

/// Bytes of the cache that grows with the context; a pool that is taken at the start says nothing.
fn cache(model: &Model) -> Option<u64> {
    let grows = model.rig.facts.as_ref()?.kind == Kind::LlamaCpp;
    let tried = model.tried.get(&model.served()?).filter(|_| grows)?;
    tried.measured?.pool_bytes
}
