//! What fits on a card, engine by engine.
//!
//! SGLang: `free - weights - (1 - fraction) * free before`, less the verify states, the rest split 0.9 : 1 between states and KV
//! (`pool_configurator.py`, `model_runner_kv_cache_mixin.py`). vLLM: `fraction * total - weights`, less what its profile run finds
//! (`kv_cache_utils.py`); a request takes whole blocks of every layer group. llama.cpp: everything is taken at start for the whole
//! context and every slot (`llama-kv-cache.cpp`).

use super::bytes::{self, Holds};
use super::deployment::Deployment;
use super::error::MemoryError;
use super::geometry::Geometry;
use crate::engine::Kind;

/// SGLang's split of what is left between states and KV, in tenths: 9 to 10.
const STATE_PARTS: u128 = 9;
const KV_PARTS: u128 = 10;
/// No context is longer; where nothing grows with it, a search ends here.
const LONGEST: u64 = 1 << 40;
/// Models for which SGLang has a second pool for window layers, of 0.8 times the tokens.
const WINDOW_POOL: [&str; 5] = ["llama4", "gptoss", "mimov2", "step3p5", "gemma4"];

/// Memory that is left for the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// Bytes on one card for KV (SGLang), for KV and states (vLLM, llama.cpp).
    pub bytes: u64,
    /// Tokens in it; `None` where no length fills it.
    pub tokens: Option<u64>,
    /// State slots (SGLang, where the model has states).
    pub slots: Option<u64>,
}

/// Whether SGLang keeps window layers in a pool of their own.
pub fn has_window_pool(geometry: &Geometry) -> bool {
    WINDOW_POOL
        .iter()
        .any(|family| geometry.family.starts_with(family))
}

/// Tenths of a byte that one token of the pool costs on one card (SGLang).
fn cell_tenths(geometry: &Geometry, d: &Deployment) -> Result<u128, MemoryError> {
    let of = |holds| bytes::kv(geometry, d.split, d.kv, holds);
    let tenths = if has_window_pool(geometry) {
        let full = of(Holds::FullOnly(1))?;
        let window = of(Holds::WindowOnly(1))?;
        full.checked_mul(10)
            .zip(window.checked_mul(8))
            .and_then(|(f, w)| f.checked_add(w))
    } else {
        of(Holds::Uniform(1))?.checked_mul(10)
    };
    tenths.ok_or(MemoryError::TooLarge)
}

/// Bytes that one pool token costs on one card as the engine charges it; SGLang and vLLM.
pub fn charged(geometry: &Geometry, d: &Deployment) -> Result<f64, MemoryError> {
    match d.engine {
        Kind::Sglang => Ok(cell_tenths(geometry, d)? as f64 / 10.0),
        _ => Ok(bytes::kv(geometry, d.split, d.kv, Holds::Uniform(1))? as f64),
    }
}

/// vLLM: tokens that a prefill step takes, which is also what a window layer holds beyond its window.
fn vllm_batch(d: &Deployment) -> u64 {
    // Its own default by the size of the card.
    if d.vram.is_some_and(|v| v >= 70 << 30) {
        8192
    } else {
        2048
    }
}

/// vLLM: tokens of one block, and the bytes of one state page. Attention and state pages are made equal.
fn vllm_pages(geometry: &Geometry, d: &Deployment) -> Result<(u64, u128), MemoryError> {
    let (token, state) = bytes::largest(geometry, d.split, d.kv, d.state_types(geometry))?;
    if state == 0 || token == 0 {
        return Ok((16, state));
    }
    let block = state.div_ceil(token).div_ceil(16).checked_mul(16);
    let block = bytes::narrow(block.ok_or(MemoryError::TooLarge)?)?;
    Ok((block, u128::from(block).saturating_mul(token)))
}

/// vLLM: bytes that one request of `n` tokens takes on one card.
pub fn vllm_request(geometry: &Geometry, d: &Deployment, n: u64) -> Result<u128, MemoryError> {
    let (block, page) = vllm_pages(geometry, d)?;
    let batch = vllm_batch(d);
    let kv = bytes::kv(geometry, d.split, d.kv, Holds::Blocks { n, block, batch })?;
    let copies = 1 + u128::from(d.draft_tokens.unwrap_or(0));
    let states = bytes::pages(geometry, d.split, page)?
        .checked_mul(copies)
        .ok_or(MemoryError::TooLarge)?;
    let draft = match d.draft_tokens {
        Some(_) => {
            let whole = n.div_ceil(block).saturating_mul(block);
            bytes::draft(geometry, d.split, d.kv, whole)?
        }
        None => 0,
    };
    kv.checked_add(states)
        .and_then(|sum| sum.checked_add(draft))
        .ok_or(MemoryError::TooLarge)
}

/// llama.cpp: cells of the cache for `n` tokens in each of `slots`.
pub fn cells(d: &Deployment, n: u64, slots: u64) -> Result<Holds, MemoryError> {
    let pad = |n: u64| {
        n.div_ceil(256)
            .checked_mul(256)
            .ok_or(MemoryError::TooLarge)
    };
    let ubatch = d.ubatch;
    if d.shared_cache {
        let cells = pad(n.checked_mul(slots).ok_or(MemoryError::TooLarge)?)?;
        return Ok(Holds::Cells {
            cells,
            sequences: d.sequences.unwrap_or(slots),
            ubatch,
            copies: 1,
        });
    }
    Ok(Holds::Cells {
        cells: pad(n)?,
        sequences: 1,
        ubatch,
        copies: slots,
    })
}

/// llama.cpp: bytes taken at start on one card for the cache and the states of `slots` of `n` tokens each.
pub fn llamacpp_taken(
    geometry: &Geometry,
    d: &Deployment,
    n: u64,
    slots: u64,
) -> Result<u128, MemoryError> {
    let kv = bytes::kv(geometry, d.split, d.kv, cells(d, n, slots)?)?;
    let copies = u128::from(d.sequences.unwrap_or(slots))
        .checked_mul(1 + u128::from(d.draft_tokens.unwrap_or(0)))
        .ok_or(MemoryError::TooLarge)?;
    let states = bytes::state(geometry, d.split, d.state_types(geometry))?
        .checked_mul(copies)
        .ok_or(MemoryError::TooLarge)?;
    let draft = match d.draft_tokens {
        Some(_) => {
            let cells = n
                .div_ceil(256)
                .checked_mul(256)
                .and_then(|n| n.checked_mul(slots))
                .ok_or(MemoryError::TooLarge)?;
            bytes::draft(geometry, d.split, d.kv, cells)?
        }
        None => 0,
    };
    kv.checked_add(states)
        .and_then(|sum| sum.checked_add(draft))
        .ok_or(MemoryError::TooLarge)
}

/// The pool of a deployment whose memory is known: `None` without card, weights or (SGLang, vLLM) fraction. Nothing left is 0 bytes.
pub fn pool(geometry: &Geometry, d: &Deployment) -> Result<Option<Pool>, MemoryError> {
    let (Some(vram), Some(weights)) = (d.vram, d.weights) else {
        return Ok(None);
    };
    let share = match (d.engine, d.fraction) {
        (_, Some(fraction)) => (vram as f64 * fraction) as u64,
        (Kind::LlamaCpp, None) => vram,
        _ => return Ok(None),
    };
    let left = share.saturating_sub(weights);
    match d.engine {
        Kind::Sglang => sglang(geometry, d, left).map(Some),
        Kind::Vllm | Kind::LlamaCpp => of_room(geometry, d, left).map(Some),
        Kind::OpenAi => Ok(None),
    }
}

/// The pool in `room` bytes for KV and states (vLLM, llama.cpp).
pub fn of_room(geometry: &Geometry, d: &Deployment, room: u64) -> Result<Pool, MemoryError> {
    Ok(Pool {
        bytes: room,
        tokens: longest(geometry, d, room, 1)?.filter(|n| *n < LONGEST),
        slots: None,
    })
}

fn sglang(geometry: &Geometry, d: &Deployment, left: u64) -> Result<Pool, MemoryError> {
    let state = bytes::state(geometry, d.split, d.state_types(geometry))?;
    let mut left = u128::from(left);
    let mut slots = None;
    if state > 0 {
        if let Some(draft) = d.draft_tokens {
            let running = d.running().unwrap_or(0);
            let verify = state
                .checked_mul(u128::from(running))
                .and_then(|b| b.checked_mul(u128::from(draft)))
                .ok_or(MemoryError::TooLarge)?;
            left = left.saturating_sub(verify);
        }
        let states = match d.state_slots {
            Some(slots) => state
                .checked_mul(u128::from(slots))
                .ok_or(MemoryError::TooLarge)?,
            None => left * STATE_PARTS / (STATE_PARTS + KV_PARTS),
        };
        slots = Some(bytes::narrow(states / state)?);
        left = left.saturating_sub(states);
    }
    let cell = cell_tenths(geometry, d)?;
    let tokens = (left * 10)
        .checked_div(cell)
        .map(bytes::narrow)
        .transpose()?;
    Ok(Pool {
        bytes: bytes::narrow(left)?,
        tokens,
        slots,
    })
}

/// How many requests of `context` tokens fit at once; `None` where no number of tokens fills the pool.
pub fn capacity(
    geometry: &Geometry,
    d: &Deployment,
    pool: &Pool,
    context: u64,
) -> Result<Option<f64>, MemoryError> {
    if context == 0 {
        return Ok(None);
    }
    match d.engine {
        Kind::Vllm => {
            let one = vllm_request(geometry, d, context)?;
            Ok((one > 0).then(|| pool.bytes as f64 / one as f64))
        }
        Kind::LlamaCpp => {
            let one = llamacpp_taken(geometry, d, context, 1)?;
            Ok((one > 0).then(|| pool.bytes as f64 / one as f64))
        }
        Kind::Sglang | Kind::OpenAi => Ok(pool.tokens.map(|tokens| tokens as f64 / context as f64)),
    }
}

/// The largest context, per request, at which `requests` fit at once; `None` where not even the smallest does.
pub fn largest_context(
    geometry: &Geometry,
    d: &Deployment,
    pool: &Pool,
    requests: u64,
) -> Result<Option<u64>, MemoryError> {
    match d.engine {
        Kind::Vllm | Kind::LlamaCpp => longest(geometry, d, pool.bytes, requests),
        Kind::Sglang | Kind::OpenAi => Ok(pool
            .tokens
            .and_then(|tokens| tokens.checked_div(requests))
            .filter(|n| *n > 0)),
    }
}

/// The longest request of which `requests` fit into `room`, by bisection: memory never falls with the length.
fn longest(
    geometry: &Geometry,
    d: &Deployment,
    room: u64,
    requests: u64,
) -> Result<Option<u64>, MemoryError> {
    let taken = |n: u64| match d.engine {
        Kind::LlamaCpp => llamacpp_taken(geometry, d, n, requests),
        _ => vllm_request(geometry, d, n).and_then(|one| {
            one.checked_mul(requests.into())
                .ok_or(MemoryError::TooLarge)
        }),
    };
    // What cannot be said of one token cannot be said at all; beyond 64 bits nothing fits.
    if taken(1)? > room.into() {
        return Ok(None);
    }
    let fits = |n: u64| taken(n).is_ok_and(|taken| taken <= room.into());
    let (mut good, mut bad) = (1, LONGEST + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if fits(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok(Some(good))
}
