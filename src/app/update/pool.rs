//! How large the KV pool is, in bytes: the log of the start says it, the server's own pages do not.

use super::super::model::Model;
use super::super::rig::PoolSize;
use crate::engine::start::{Known, Reader};

/// The log is read for it so long after the server was seen first, milliseconds.
const YOUNG_MS: u64 = 60_000;

/// Takes the size from the lines that are there, unless it is known.
pub fn note(model: &mut Model) {
    let young = |since| model.now.since(since) < YOUNG_MS;
    if model.rig.since_start.pool.is_some()
        || !model.rig.up()
        || !model.rig.serving_since.is_some_and(young)
    {
        return;
    }
    let mut reader = Reader::new(model.rig.facts.as_ref().map(|facts| facts.kind));
    for line in &model.log {
        reader.read(line);
    }
    let facts = reader.diagnose(&Known::default()).facts;
    let bytes = |gib: f64| (gib * crate::units::GIB).round() as u64;
    let card = facts
        .kv_pool_gib_per_gpu
        .map(|gib| PoolSize::Card(bytes(gib)));
    let whole = facts.kv_gib.map(|gib| PoolSize::Whole(bytes(gib)));
    model.rig.since_start.pool = card.or(whole);
}
