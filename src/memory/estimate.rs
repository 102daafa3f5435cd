//! The memory of a model at one context, before anything runs.

use super::bytes::{self, Holds};
use super::cost;
use super::deployment::Deployment;
use super::error::MemoryError;
use super::forecast;
use super::geometry::{Cache, Geometry};
use super::pool::{self, Pool};
use crate::engine::Kind;
use crate::units::{GIB, thousands};
use serde::Serialize;

/// One context on one card. Absent is what was not asked, or what this engine does not have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    pub model: String,
    /// Tokens of one request.
    pub context: u64,
    /// Growth with each token more, once every window is full.
    pub kv_bytes_per_token: u64,
    /// Full layers hold the context, window layers their window; of all requests asked for.
    pub kv_bytes: u64,
    /// Every attention layer holds the context.
    pub kv_uniform_bytes: u64,
    /// What llama.cpp takes, its slots sharing one cache; absent for a type that it does not have and where its way is not known.
    pub kv_llamacpp_bytes: Option<u64>,
    /// Fixed state of all requests asked for.
    pub state_bytes: u64,
    /// Copies of the state for verifying draft tokens.
    pub spec_intermediate_bytes: Option<u64>,
    /// KV of the model's own draft layers.
    pub mtp_draft_kv_bytes: Option<u64>,
    /// Tokens that the memory of the card holds.
    pub pool_tokens: Option<u64>,
    /// Requests of this context that fit at once.
    pub capacity: Option<f64>,
    /// SGLang and vLLM: one request fits. llama.cpp: every slot's whole context fits, for it is taken at start.
    pub fits: Option<bool>,
    pub notes: Vec<String>,
}

/// Makes it.
pub fn estimate(
    geometry: &Geometry,
    d: &Deployment,
    context: u64,
) -> Result<Estimate, MemoryError> {
    let requests = d.split.per_replica(d.requests.unwrap_or(1));
    let times = |one: u128| -> Result<u64, MemoryError> {
        bytes::narrow(
            one.checked_mul(requests.into())
                .ok_or(MemoryError::TooLarge)?,
        )
    };
    let kv = |holds| bytes::kv(geometry, d.split, d.kv, holds);
    let state = bytes::state(geometry, d.split, d.state_types(geometry))?;
    let draft = bytes::draft(geometry, d.split, d.kv, context)?;
    let pool = pool::pool(geometry, d)?;
    let capacity = match &pool {
        Some(pool) => pool::capacity(geometry, d, pool, context)?,
        None => None,
    };
    let mut estimate = Estimate {
        model: geometry.name.clone(),
        context,
        kv_bytes_per_token: bytes::narrow(kv(Holds::FullOnly(1))?)?,
        kv_bytes: times(kv(Holds::Ideal(context))?)?,
        kv_uniform_bytes: times(kv(Holds::Uniform(context))?)?,
        kv_llamacpp_bytes: llamacpp(geometry, d, context, requests)?,
        state_bytes: times(state)?,
        spec_intermediate_bytes: match d.draft_tokens {
            Some(tokens) => Some(times(
                state
                    .checked_mul(tokens.into())
                    .ok_or(MemoryError::TooLarge)?,
            )?),
            None => None,
        },
        mtp_draft_kv_bytes: match geometry.draft.is_empty() {
            true => None,
            false => Some(times(draft)?),
        },
        pool_tokens: pool.and_then(|pool| pool.tokens),
        capacity,
        fits: fits(geometry, d, pool.as_ref(), capacity, context)?,
        notes: Vec::new(),
    };
    estimate.notes = notes(geometry, d, pool.as_ref(), &estimate)?;
    Ok(estimate)
}

/// llama.cpp's cache as one that the slots share.
fn llamacpp(
    geometry: &Geometry,
    d: &Deployment,
    context: u64,
    slots: u64,
) -> Result<Option<u64>, MemoryError> {
    let indexed = geometry.layers.iter().any(|layer| {
        layer.attention.is_some_and(|a| {
            matches!(
                a.cache,
                Cache::Latent {
                    indexer: Some(_),
                    ..
                }
            )
        })
    });
    if indexed || !(d.kv.key.llamacpp && d.kv.value.llamacpp) {
        return Ok(None);
    }
    let shared = Deployment {
        shared_cache: true,
        ..d.clone()
    };
    let holds = pool::cells(&shared, context, slots)?;
    bytes::narrow(bytes::kv(geometry, d.split, d.kv, holds)?).map(Some)
}

fn fits(
    geometry: &Geometry,
    d: &Deployment,
    pool: Option<&Pool>,
    capacity: Option<f64>,
    context: u64,
) -> Result<Option<bool>, MemoryError> {
    let Some(pool) = pool else {
        return Ok(None);
    };
    if d.engine == Kind::LlamaCpp {
        let slots = d.requests.unwrap_or(1);
        let taken = pool::llamacpp_taken(geometry, d, context, slots)?;
        return Ok(Some(taken <= pool.bytes.into()));
    }
    Ok(Some(match capacity {
        Some(capacity) => capacity >= 1.0,
        None => pool.bytes > 0,
    }))
}

fn notes(
    geometry: &Geometry,
    d: &Deployment,
    pool: Option<&Pool>,
    estimate: &Estimate,
) -> Result<Vec<String>, MemoryError> {
    let mut notes = vec![geometry.words()];
    notes.extend(geometry.notes.iter().cloned());
    notes.extend(limit(geometry));
    notes.extend(split(geometry, d));
    notes.extend(types(geometry, d));
    notes.extend(engine(geometry, d, pool, estimate)?);
    notes.extend(room(geometry, d, pool)?);
    notes.extend(forecast::forecast(geometry, d, d, None, estimate.context)?.warnings);
    Ok(notes)
}

fn limit(geometry: &Geometry) -> Vec<String> {
    let limit = &geometry.limit;
    let Some(config) = limit.config else {
        return vec!["the configuration names no longest length".into()];
    };
    let mut text = format!("made for {} tokens", thousands(config));
    if let Some(scaling) = &limit.scaling {
        let scaled = limit.scaled.unwrap_or(config);
        if scaled == config {
            text.push_str(&format!(" ({scaling} included)"));
        } else {
            text.push_str(&format!(", {} with its {scaling}", thousands(scaled)));
        }
    }
    let mut notes = vec![text];
    if limit.sglang < limit.scaled {
        notes.push(format!(
            "SGLang derives {}: above it, it needs an explicit context length and its override switch although scaling is set",
            thousands(limit.sglang.unwrap_or(config))
        ));
    }
    notes
}

fn split(geometry: &Geometry, d: &Deployment) -> Vec<String> {
    let ranks = d.split.ranks();
    let mut notes = Vec::new();
    let first = geometry.layers.iter().find_map(|layer| layer.attention);
    match first.map(|attention| attention.cache) {
        Some(Cache::Latent { .. }) if ranks > 1 => {
            notes.push("the latent cache is the same on every rank and is not divided".into());
        }
        Some(Cache::Heads { heads, .. }) if ranks > heads => notes.push(format!(
            "{heads} KV heads on {ranks} ranks: each keeps one, more ranks save nothing"
        )),
        Some(Cache::Heads { heads, .. }) if !heads.is_multiple_of(ranks) => notes.push(format!(
            "{heads} KV heads do not divide over {ranks} ranks; most engines refuse to start so"
        )),
        _ => {}
    }
    if d.split.dp > 1 {
        notes.push(format!(
            "{} attention replicas, each with its own pool: one request can use one replica's",
            d.split.dp
        ));
    }
    if d.split.pp > 1 {
        notes.push("figures are those of the fullest stage".into());
    }
    if d.engine == Kind::LlamaCpp && d.split.tp > 1 {
        notes.push(
            "llama.cpp divides heads over cards only with --split-mode tensor; it splits by layers otherwise (--pp)"
                .into(),
        );
    }
    notes
}

fn types(geometry: &Geometry, d: &Deployment) -> Vec<String> {
    let mut notes = Vec::new();
    let python = matches!(d.engine, Kind::Sglang | Kind::Vllm);
    if d.engine == Kind::LlamaCpp && !(d.kv.key.llamacpp && d.kv.value.llamacpp) {
        notes.push(format!("llama.cpp has no KV type {}", d.kv));
    }
    if python && [d.kv.key, d.kv.value].iter().any(|kind| kind.block == 32) {
        notes.push(format!(
            "{} is a type of llama.cpp; {} does not have it",
            d.kv,
            d.engine.name()
        ));
    }
    if d.kv.key.name == "int8" {
        notes.push("scales of int8 are not counted: they differ from engine to engine".into());
    }
    if geometry.state_layers() > 0 {
        let types = d.state_types(geometry);
        notes.push(format!(
            "state with its convolution in {} and its recurrent part in {}",
            types.conv.name(),
            types.ssm.name()
        ));
    }
    if d.draft_tokens.is_some() && geometry.draft.is_empty() {
        notes.push(
            "the model has no draft layer of its own; a draft model's memory is not counted".into(),
        );
    }
    notes
}

fn engine(
    geometry: &Geometry,
    d: &Deployment,
    pool: Option<&Pool>,
    estimate: &Estimate,
) -> Result<Vec<String>, MemoryError> {
    let mut notes = Vec::new();
    let windows = geometry.window_layers() > 0;
    match d.engine {
        Kind::Sglang => {
            if windows && pool::has_window_pool(geometry) {
                notes.push("SGLang keeps window layers in a pool of 0.8 times the tokens".into());
            } else if windows {
                notes.push(format!(
                    "SGLang has no window pool for this model and charges every layer in full: {} bytes a token",
                    thousands(pool::charged(geometry, d)? as u64)
                ));
            }
            notes.push("SGLang takes the KV pool at start: memory hardly moves with the context, capacity does".into());
        }
        Kind::Vllm => {
            if geometry.state_layers() > 0 {
                notes.push("vLLM makes pages of attention and state equal: go by its maximum concurrency, not by its printed tokens".into());
            }
            notes.push("vLLM takes the KV pool at start: memory hardly moves with the context, capacity does".into());
        }
        Kind::LlamaCpp => {
            notes.push("llama.cpp takes the KV of the whole context at start: twice the context, twice the KV".into());
            if !estimate.context.is_multiple_of(256) {
                notes.push(format!(
                    "llama.cpp rounds {} up to {}",
                    thousands(estimate.context),
                    thousands(estimate.context.div_ceil(256).saturating_mul(256))
                ));
            }
            if windows && d.requests.is_some_and(|slots| slots > 1) {
                let split = Deployment {
                    shared_cache: false,
                    ..d.clone()
                };
                let holds = pool::cells(&split, estimate.context, d.requests.unwrap_or(1))?;
                let apart = bytes::kv(geometry, d.split, d.kv, holds)?;
                notes.push(format!(
                    "with a cache for each slot instead of a shared one: {} bytes of KV",
                    thousands(bytes::narrow(apart)?)
                ));
            }
        }
        Kind::OpenAi => notes.push(
            "no engine named: formulas only; --engine adds what sglang, vllm or llamacpp makes of them".into(),
        ),
    }
    if matches!(d.engine, Kind::Sglang | Kind::Vllm) {
        let tokens = pool.and_then(|pool| pool.tokens);
        let own = cost::of_context(geometry, d, estimate.context, tokens)?;
        notes.push(format!(
            "beside the pool this context costs about {:.2} GiB (± {:.2}) for tables and graph buffers",
            own.bytes as f64 / GIB,
            own.plus_minus as f64 / GIB
        ));
    }
    Ok(notes)
}

/// What fits, and what would have to be known for it.
fn room(
    geometry: &Geometry,
    d: &Deployment,
    pool: Option<&Pool>,
) -> Result<Vec<String>, MemoryError> {
    let mut notes = Vec::new();
    let Some(pool) = pool else {
        let python = d.engine != Kind::LlamaCpp;
        if d.engine != Kind::OpenAi
            && (d.vram.is_some() || d.weights.is_some() || d.fraction.is_some())
        {
            notes.push(format!(
                "no pool without --vram, --weights{}",
                if python { " and --fraction" } else { "" }
            ));
        }
        return Ok(notes);
    };
    if pool.bytes == 0 {
        notes.push("weights and set-asides leave nothing for the pool: fewer requests, more cards, or a higher fraction".into());
        return Ok(notes);
    }
    if d.engine == Kind::Vllm {
        notes.push("the pool is an upper bound: vLLM also takes off what its profile run and its graphs need".into());
    }
    let words = |n: Option<u64>| n.map_or_else(|| "none".to_string(), thousands);
    let one = pool::largest_context(geometry, d, pool, 1)?;
    let mut text = format!(
        "by memory, the largest context for one request: {}",
        words(one)
    );
    if let Some(requests) = d.requests.filter(|n| *n > 1) {
        let here = d.split.per_replica(requests);
        let all = pool::largest_context(geometry, d, pool, here)?;
        text.push_str(&format!(", for {requests} at once: {}", words(all)));
    }
    notes.push(text);
    if let Some(slots) = pool.slots {
        let running = slots / 3;
        let mut text = format!(
            "{} state slots: {} requests run at once with the prefix cache on",
            thousands(slots),
            thousands(running)
        );
        if d.running().is_some_and(|asked| asked > running) {
            text.push_str(", fewer than asked for");
        }
        notes.push(text);
    }
    Ok(notes)
}
