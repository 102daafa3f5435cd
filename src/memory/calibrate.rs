//! The formula beside what a deployment's own boot log says.

use super::bytes::{self, Holds, Split};
use super::cost::Bytes;
use super::deployment::Deployment;
use super::error::MemoryError;
use super::forecast::Forecast;
use super::geometry::Geometry;
use super::pool;
use crate::engine::Kind;
use crate::engine::start::Diagnosis;
use serde::{Deserialize, Serialize};

/// Engines print sizes in GiB with two decimals; keys and values are printed apart, so two roundings meet.
const PRINTED: u64 = (1 << 30) / 100;

/// Facts of one start, from its log; of one card. What the log does not say is absent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Measured {
    /// The context, per request, with which it was started.
    pub context: u64,
    /// Most running requests, or slots.
    pub requests: Option<u64>,
    pub pool_tokens: Option<u64>,
    /// Bytes of the KV pool without the draft layers'.
    pub pool_bytes: Option<u64>,
    /// Requests of `context` that fit at once, as vLLM prints it.
    pub concurrency: Option<f64>,
    pub weights: Option<u64>,
    pub graphs: Option<u64>,
    /// Bytes left when all was done.
    pub available: Option<u64>,
}

impl Measured {
    /// What the log of a start says.
    pub fn of_start(log: &Diagnosis) -> Self {
        let facts = &log.facts;
        let bytes = |gib: Option<f64>| gib.map(|gib| (gib * crate::units::GIB) as u64);
        Measured {
            context: facts
                .effective_context_per_request
                .or(facts.requested_context)
                .unwrap_or(0),
            requests: facts.max_running_requests.or(facts.slots),
            pool_tokens: facts.kv_pool_tokens,
            pool_bytes: bytes(facts.kv_pool_gib_per_gpu.or(facts.kv_gib)),
            concurrency: log.taken.concurrency,
            weights: bytes(log.taken.weights_gib),
            graphs: bytes(log.taken.graphs_gib),
            available: bytes(facts.free_gib_per_gpu),
        }
    }
}

/// How far the formula is from the log.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Bytes that one token of the pool costs, by the formula.
    pub formula: f64,
    /// By the log.
    pub measured: f64,
    /// By how much the log's figure may be off through its own rounding.
    pub rounding: f64,
}

impl Calibration {
    /// `measured / formula - 1`.
    pub fn difference(&self) -> f64 {
        if self.formula > 0.0 {
            self.measured / self.formula - 1.0
        } else {
            0.0
        }
    }

    /// The difference is no more than the log's rounding.
    pub fn agrees(&self) -> bool {
        (self.measured - self.formula).abs() <= self.rounding
    }

    /// In words: `the log's 32,792 bytes a token and the formula's 32,768 agree (+0.1 %)`.
    pub fn words(&self) -> String {
        let verdict = if self.agrees() { "agree" } else { "differ" };
        format!(
            "the boot log's {} bytes a token and the formula's {} {verdict} ({:+.1} %)",
            crate::units::thousands(self.measured.round() as u64),
            crate::units::thousands(self.formula.round() as u64),
            self.difference() * 100.0
        )
    }
}

/// Bytes that one token of the pool costs by the formula, as this engine charges and prints it: on one card, and of llama.cpp, which
/// prints a line for each card, on all of them.
fn formula(
    geometry: &Geometry,
    d: &Deployment,
    measured: &Measured,
    tokens: u64,
) -> Result<f64, MemoryError> {
    match d.engine {
        Kind::LlamaCpp => {
            let slots = d.requests.or(measured.requests).unwrap_or(1);
            let holds = pool::cells(d, measured.context, slots)?;
            let all = Split::default();
            Ok(bytes::kv(geometry, all, d.kv, holds)? as f64 / tokens as f64)
        }
        Kind::Sglang if pool::has_window_pool(geometry) => pool::charged(geometry, d),
        _ => Ok(bytes::kv(geometry, d.split, d.kv, Holds::Uniform(1))? as f64),
    }
}

/// Sets the log beside the formula; `None` where the log says too little, or says tokens that are none: vLLM's figure for models
/// with windows or states counts blocks of several kinds.
pub fn calibrate(
    geometry: &Geometry,
    d: &Deployment,
    measured: &Measured,
) -> Result<Option<Calibration>, MemoryError> {
    let (Some(tokens), Some(size)) = (measured.pool_tokens, measured.pool_bytes) else {
        return Ok(None);
    };
    // All engines together, of which each prints its own bytes.
    let tokens = tokens / d.engines.unwrap_or(1).max(1);
    let mixed = geometry.window_layers() + geometry.state_layers() > 0;
    if tokens == 0 || (d.engine == Kind::Vllm && mixed) {
        return Ok(None);
    }
    Ok(Some(Calibration {
        formula: formula(geometry, d, measured, tokens)?,
        measured: size as f64 / tokens as f64,
        rounding: PRINTED as f64 / tokens as f64,
    }))
}

/// A forecast that was made, to be set beside what came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The context that was served when it was made.
    pub from: u64,
    pub forecast: Forecast,
    /// What the fullest card's memory really changed by, bytes; when it is known.
    pub came: Option<i64>,
}

impl Record {
    /// Forecast minus what came, bytes: how wrong it was.
    pub fn error(&self) -> Option<i64> {
        self.forecast.change?.bytes.checked_sub(self.came?)
    }

    /// `last forecast +0.1 GiB`.
    pub fn words(&self) -> Option<String> {
        Some(format!(
            "last forecast {:+.1} GiB",
            self.error()? as f64 / crate::units::GIB
        ))
    }

    /// Whether what came lies within the error that was stated.
    pub fn held(&self) -> Option<bool> {
        let Bytes { plus_minus, .. } = self.forecast.change?;
        Some(self.error()?.unsigned_abs() <= plus_minus)
    }
}
