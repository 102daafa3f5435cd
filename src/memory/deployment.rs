//! How a model is served: what of it decides about memory.

use super::bytes::Split;
use super::geometry::Geometry;
use super::types::{FP16, KvTypes, StateChoice, StateType, StateTypes};
use crate::engine::Kind;
use serde::Serialize;

/// llama.cpp's own physical batch.
pub const UBATCH: u64 = 512;

/// Running requests that SGLang allows while drafting when nothing is said.
pub const DRAFTING_REQUESTS: u64 = 48;

/// One deployment. Bytes are those of one card; a figure that is not known is absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Deployment {
    pub engine: Kind,
    pub split: Split,
    pub kv: KvTypes,
    pub state: StateChoice,
    /// Most running requests (SGLang, vLLM) or slots (llama.cpp), over all replicas.
    pub requests: Option<u64>,
    /// Draft tokens that are verified in one step.
    pub draft_tokens: Option<u64>,
    /// State slots set by hand (SGLang's `--max-mamba-cache-size`).
    pub state_slots: Option<u64>,
    /// vLLM's engines, each with a pool of its own (`--data-parallel-size`).
    pub engines: Option<u64>,
    /// llama.cpp's physical batch.
    pub ubatch: u64,
    /// llama.cpp: the slots share one cache (`--kv-unified`).
    pub shared_cache: bool,
    /// llama.cpp: slots that share a cache of which one request may have all; `requests` is 1 then.
    pub sequences: Option<u64>,
    /// llama.cpp: the cache lies in the machine's memory, whatever cards there are.
    pub off_cards: bool,
    /// Bytes of a card that are free for the server before it starts.
    pub vram: Option<u64>,
    /// SGLang's `--mem-fraction-static` or vLLM's `--gpu-memory-utilization`, 0..1.
    pub fraction: Option<f64>,
    /// Bytes of the weights on a card.
    pub weights: Option<u64>,
}

impl Deployment {
    /// A deployment on one card of which nothing else is known.
    pub fn new(engine: Kind) -> Self {
        Deployment {
            engine,
            split: Split::default(),
            kv: match engine {
                Kind::LlamaCpp => KvTypes {
                    key: FP16,
                    value: FP16,
                },
                _ => KvTypes::default(),
            },
            state: StateChoice::default(),
            requests: None,
            draft_tokens: None,
            state_slots: None,
            engines: None,
            ubatch: UBATCH,
            shared_cache: false,
            sequences: None,
            off_cards: false,
            vram: None,
            fraction: None,
            weights: None,
        }
    }

    /// The types of the fixed state: as asked, else as the engine takes them.
    ///
    /// SGLang: convolution in 16 bits, recurrent in 32 unless the configuration says otherwise. vLLM: both as the configuration says,
    /// else 16 bits (Nemotron-H: recurrent in 32). llama.cpp: both in 32.
    pub fn state_types(&self, geometry: &Geometry) -> StateTypes {
        let own = geometry.state_type;
        let (conv, ssm) = match self.engine {
            Kind::LlamaCpp => (StateType::Fp32, StateType::Fp32),
            Kind::Vllm if geometry.family.starts_with("nemotronh") => {
                (StateType::Bf16, own.unwrap_or(StateType::Fp32))
            }
            Kind::Vllm => (StateType::Bf16, own.unwrap_or(StateType::Bf16)),
            Kind::Sglang | Kind::OpenAi => (StateType::Bf16, own.unwrap_or(StateType::Fp32)),
        };
        StateTypes {
            conv: self.state.conv.unwrap_or(conv),
            ssm: self.state.ssm.unwrap_or(ssm),
        }
    }

    /// Requests that may run at once on one replica: as limited, or SGLang's own limit while drafting. `None` where the engine
    /// finds the limit itself.
    pub fn running(&self) -> Option<u64> {
        let drafting = self.engine == Kind::Sglang && self.draft_tokens.is_some();
        self.requests
            .or(drafting.then_some(DRAFTING_REQUESTS))
            .map(|requests| self.split.per_replica(requests))
    }

    /// The name of the argument that limits running requests.
    pub fn limit_name(&self) -> &'static str {
        match self.engine {
            Kind::Sglang => "max-running-requests",
            Kind::Vllm => "max-num-seqs",
            Kind::LlamaCpp => "parallel",
            Kind::OpenAi => "the request limit",
        }
    }
}
