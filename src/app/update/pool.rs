//! How large the KV pool is, where the server's own pages do not say it: by the launch and by the log of the start; and what else
//! that log says of memory.

use super::super::effect::Effect;
use super::super::forecast;
use super::super::model::Model;
use super::super::rig::PoolSize;
use super::save_tried;
use crate::engine::start::{Known, Reader};
use crate::engine::{self, Facts, Kind};
use crate::memory::{Measured, launched};
use crate::reading::Reading;

/// The log is read for it so long after the server was seen first, milliseconds.
const YOUNG_MS: u64 = 60_000;
/// As a share: sizes of the pool from the log and from the metrics that differ no more are the same.
const SAME_POOL: f64 = 0.05;

/// Takes both from the lines that are there, unless they are known. What was measured belongs to what runs, also where somebody else
/// started it.
pub fn note(model: &mut Model) -> Option<Effect> {
    let young = |since| model.now.since(since) < YOUNG_MS;
    if model.rig.since_start.pool.is_some()
        || !model.rig.up()
        || !model.rig.serving_since.is_some_and(young)
    {
        return None;
    }
    let mut reader = Reader::new(model.rig.facts.as_ref().map(|facts| facts.kind));
    for line in &model.log {
        reader.read(line);
    }
    let start = reader.diagnose(&Known::default());
    let bytes = |gib: f64| (gib * crate::units::GIB).round() as u64;
    let card = start.facts.kv_pool_gib_per_gpu;
    let card = card.map(|gib| PoolSize::Card(bytes(gib)));
    let whole = start.facts.kv_gib.map(|gib| PoolSize::Whole(bytes(gib)));
    model.rig.since_start.pool = card.or(whole);

    let measured = Measured::of_start(&start);
    let served = model.served()?;
    if measured.pool_tokens.is_none() || measured.context != served {
        return None;
    }
    let config = model.rig.config.clone();
    let tried = model.tried_mut(served);
    if tried.measured.is_some() || tried.config != config {
        return None;
    }
    tried.measured = Some(measured);
    count_whole_requests(model);
    Some(save_tried(model, served))
}

/// Whether llama.cpp's slots share one cache stands in the launch alone.
pub fn of_slots(model: &Model, facts: &mut Facts) {
    if facts.kind == Kind::LlamaCpp
        && let Some(launch) = forecast::running(model)
        && let Some(shared) = launched::shared_cache(&launch.argv, &launch.env)
    {
        engine::settle_cache(facts, shared);
    }
}

/// The metrics of vLLM count the pool of a model with windows or states in blocks of several kinds; how many whole requests fit is in the
/// log of its start.
pub fn count_whole_requests(model: &mut Model) {
    let config = &model.rig.config;
    let Some(facts) = model.rig.facts.as_mut().filter(|f| f.kind == Kind::Vllm) else {
        return;
    };
    let context = &mut facts.context;
    let Some(served) = context.configured.known().copied() else {
        return;
    };
    let logged = model.tried.get_mut(&served).filter(|t| t.config == *config);
    let Some((tried, fits)) = logged.and_then(|tried| {
        let measured = tried.measured.filter(|m| m.context == served)?;
        Some((tried, measured.concurrency?))
    }) else {
        return;
    };
    let whole = fits * served as f64;
    let page = context.pool_tokens.known().copied();
    if page.is_some_and(|page| (page as f64 / whole - 1.0).abs() > SAME_POOL) {
        context.pool_tokens = Reading::Value(whole as u64);
        tried.capacity = context.capacity();
    }
}
