//! How large the KV pool is, in bytes, and what else the log of the start says and the server's own pages do not.

use super::super::effect::Effect;
use super::super::model::Model;
use super::super::rig::PoolSize;
use super::save_tried;
use crate::engine::start::{Known, Reader};
use crate::memory::Measured;

/// The log is read for it so long after the server was seen first, milliseconds.
const YOUNG_MS: u64 = 60_000;

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
    super::server::count_whole_requests(model);
    Some(save_tried(model, served))
}
