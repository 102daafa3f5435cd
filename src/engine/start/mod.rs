//! What the log of a start says: how far it is, what it allocated, and why it failed.
//!
//! A [`Reader`] takes the log line by line, in bounded memory; [`Reader::diagnose`] judges what it has read together with what
//! is known from elsewhere ([`Known`]: the exit code, the cards, what was asked for).

mod advice;
mod argument;
mod judge;
mod line;
mod llamacpp;
mod memory;
mod pace;
mod python;
mod reader;
mod seen;
mod sglang;
mod shape;
mod timed;
mod trouble;
mod vllm;
mod words;

pub use judge::{Known, Load};
pub use pace::{Pace, Signs, pace};
pub use reader::{Change, Reader};
pub use seen::Progress;
pub use timed::{Feed, FeedError};

use super::{Kind, Phase};
use serde::Serialize;

#[cfg(test)]
mod tests;

/// How a start stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Ready,
    Failed,
    Loading,
    Stuck,
}

/// Why a start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    OomWeights,
    NoRoomForPool,
    KvPoolBelowOneRequest,
    OomGraphCapture,
    OomPrefill,
    OomHost,
    ContextAboveModelLimit,
    GpuNotFree,
    PortInUse,
    BadArgument,
    ModelMissing,
    DriverMismatch,
    StalledInCollectives,
    Killed,
    /// It ended without saying why.
    Crashed,
    /// It said why, in words that are not known here.
    Unknown,
}

impl Cause {
    /// In words, as the screen shows it.
    pub fn words(self) -> &'static str {
        match self {
            Cause::OomWeights => "out of card memory while loading weights",
            Cause::NoRoomForPool => "no card memory left for the KV pool",
            Cause::KvPoolBelowOneRequest => "the KV pool cannot hold one request of this context",
            Cause::OomGraphCapture => "out of card memory while capturing graphs",
            Cause::OomPrefill => "out of card memory while working on a prompt",
            Cause::OomHost => "out of host memory",
            Cause::ContextAboveModelLimit => "the context is above the model's own limit",
            Cause::GpuNotFree => "the cards are not free",
            Cause::PortInUse => "the port is taken",
            Cause::BadArgument => "an argument is wrong",
            Cause::ModelMissing => "the model is missing or incomplete",
            Cause::DriverMismatch => "the driver does not fit",
            Cause::StalledInCollectives => "the cards wait for each other",
            Cause::Killed => "the server was killed",
            Cause::Crashed => "the server crashed without a word",
            Cause::Unknown => "the server failed for a reason that is not known here",
        }
    }
}

/// The figures that a log states. What it does not say is `None`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct StartFacts {
    /// The context as the flag says it; of llama.cpp over all slots.
    pub requested_context: Option<u64>,
    /// Tokens that one request can really use.
    pub effective_context_per_request: Option<u64>,
    /// The model's own limit, tokens.
    pub model_limit: Option<u64>,
    pub kv_pool_tokens: Option<u64>,
    /// llama.cpp: the whole KV cache.
    pub kv_gib: Option<f64>,
    pub kv_pool_gib_per_gpu: Option<f64>,
    pub draft_kv_gib_per_gpu: Option<f64>,
    /// State of linear-attention layers.
    pub fixed_state_gib_per_gpu: Option<f64>,
    pub fixed_state_mib: Option<f64>,
    /// Allocated, and of no use to any request.
    pub wasted_gib: Option<f64>,
    pub mamba_slots: Option<u64>,
    pub slots: Option<u64>,
    pub max_running_requests: Option<u64>,
    /// Free on the card that the decisive line names.
    pub free_gib: Option<f64>,
    /// Free on the tightest card when the start had come so far.
    pub free_gib_per_gpu: Option<f64>,
    /// What was asked for and not there.
    pub needed_gib: Option<f64>,
    /// What there was for the KV pool.
    pub available_gib: Option<f64>,
    /// The whole card that the decisive line names.
    pub total_gib: Option<f64>,
    /// That card, `cuda:0`.
    pub device: Option<String>,
    pub port: Option<u64>,
    /// The share of memory that the engine was told to take, 0..1.
    pub fraction: Option<f64>,
    /// Seconds without progress.
    pub after_s: Option<f64>,
}

/// What a start of SGLang or vLLM took on one card beside the pool, and what fits into that, for whoever estimates the next one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Taken {
    /// The weights, the draft's too.
    pub weights_gib: Option<f64>,
    pub graphs_gib: Option<f64>,
    /// vLLM: requests of full length that fit at once.
    pub concurrency: Option<f64>,
}

/// What became of a start, and what to do next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    pub engine: Option<Kind>,
    pub version: Option<String>,
    pub outcome: Outcome,
    pub phase: Option<Phase>,
    pub cause: Option<Cause>,
    /// The decisive lines, cleaned, the most telling first.
    pub evidence: Vec<String>,
    pub advice: Option<String>,
    /// A context to try, per request, if the engine names or implies one.
    pub suggested_context: Option<u64>,
    pub facts: StartFacts,
    #[serde(skip)]
    pub taken: Taken,
}
