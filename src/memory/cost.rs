//! What the context length itself costs on a card, beside the pool.
//!
//! SGLang: the request table `(rows + 1) * (context + 4 + draft tokens) * 4 B` (`mem_cache/memory_pool.py`), and the index buffers of
//! the decode graphs `batch * tokens a step * context * (4 B, + 1 B mask while drafting)` with `(draft tokens - 1) * batch * context * 4 B`
//! for the draft steps (`layers/attention/flashinfer_backend.py`). vLLM: block tables `requests * context / 16 * 4 B`. llama.cpp: the
//! cache itself.

use super::deployment::Deployment;
use super::error::MemoryError;
use super::geometry::Geometry;
use super::pool;
use crate::engine::Kind;
use serde::{Deserialize, Serialize};

/// Requests in one decode graph, where the limit is not known or larger.
const GRAPH_BATCH: u64 = 32;
/// vLLM's own limit on requests.
const VLLM_REQUESTS: u64 = 256;

/// Bytes with the bytes by which they may be off, either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Bytes {
    pub bytes: i64,
    pub plus_minus: u64,
}

/// What `context` costs on one card; `pool_tokens` decides about SGLang's table where no limit is set.
pub fn of_context(
    geometry: &Geometry,
    d: &Deployment,
    context: u64,
    pool_tokens: Option<u64>,
) -> Result<Bytes, MemoryError> {
    let (bytes, plus_minus) = match d.engine {
        Kind::Sglang => sglang(d, context, pool_tokens)?,
        Kind::Vllm => {
            let rows = d.requests.unwrap_or(VLLM_REQUESTS);
            let bytes = product(&[rows, context.div_ceil(16), 4])?;
            (bytes, bytes)
        }
        Kind::LlamaCpp => {
            let slots = d.requests.unwrap_or(1);
            let taken = pool::llamacpp_taken(geometry, d, context, slots)?;
            // The attention mask of the compute buffer: for each cell of one cache and each token of a batch 2 B with flash
            // attention, 4 B without.
            let shared = if d.shared_cache { slots } else { 1 };
            let mask = product(&[context, shared, d.ubatch, 4])?;
            (taken, mask)
        }
        Kind::OpenAi => return Ok(Bytes::default()),
    };
    Ok(Bytes {
        bytes: i64::try_from(bytes).map_err(|_| MemoryError::TooLarge)?,
        plus_minus: super::bytes::narrow(plus_minus)?,
    })
}

/// Rows of SGLang's request table.
fn rows(d: &Deployment, context: u64, pool_tokens: Option<u64>) -> u64 {
    let own = pool_tokens
        .map(|pool| (pool as f64 / context.max(1) as f64 * 512.0) as u64)
        .unwrap_or(0)
        .clamp(2048, 4096);
    d.running().map_or(own, |requests| requests.min(own))
}

fn sglang(
    d: &Deployment,
    context: u64,
    pool_tokens: Option<u64>,
) -> Result<(u128, u128), MemoryError> {
    let draft = d.draft_tokens.unwrap_or(0);
    let rows = rows(d, context, pool_tokens);
    let width = context
        .checked_add(4)
        .and_then(|n| n.checked_add(draft))
        .ok_or(MemoryError::TooLarge)?;
    let table = product(&[rows.saturating_add(1), width, 4])?;
    let batch = rows.min(GRAPH_BATCH);
    let graphs = product(&[batch, draft.max(1), context, if draft > 0 { 5 } else { 4 }])?;
    let steps = product(&[draft.saturating_sub(1), batch, context, 4])?;
    let buffers = graphs.checked_add(steps).ok_or(MemoryError::TooLarge)?;
    // Another attention backend keeps twice the index, and the largest graph is not known from outside.
    let sum = table.checked_add(buffers).ok_or(MemoryError::TooLarge)?;
    Ok((sum, buffers))
}

fn product(parts: &[u64]) -> Result<u128, MemoryError> {
    parts.iter().try_fold(1u128, |product, part| {
        product
            .checked_mul(u128::from(*part))
            .ok_or(MemoryError::TooLarge)
    })
}
