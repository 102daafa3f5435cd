//! What of a model decides about memory: its layers, one by one, and how long it was trained.

use super::types::StateType;
use serde::{Deserialize, Serialize};

/// A model, as far as memory is concerned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Geometry {
    /// What it is called: its file, folder, or family.
    pub name: String,
    /// `model_type` of a configuration, `general.architecture` of a GGUF file; lower case letters and digits only.
    pub family: String,
    pub layers: Vec<Layer>,
    /// Layers that only draft (MTP, NEXTN).
    pub draft: Vec<Layer>,
    pub limit: Limit,
    /// The recurrent state's type, where the configuration names one.
    pub state_type: Option<StateType>,
    /// What was taken for granted while reading, in words.
    pub notes: Vec<String>,
}

/// One layer: it may hold a KV cache, a fixed state, both, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Layer {
    pub attention: Option<Attention>,
    pub state: Option<State>,
}

/// A layer's KV cache. Layers that use another layer's have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attention {
    pub cache: Cache,
    /// Tokens that a window or chunk layer looks back.
    pub window: Option<u64>,
}

/// What is kept of each token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// A key and a value for each KV head.
    Heads { heads: u64, key: u64, value: u64 },
    /// One latent vector and one position part for all heads (MLA); `indexer` elements more where attention is sparse.
    Latent {
        rank: u64,
        rope: u64,
        indexer: Option<u64>,
    },
}

/// What a linear layer keeps of one sequence, whatever its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Gated delta net, and Kimi's delta attention with as many key heads as value heads.
    Delta {
        key_heads: u64,
        value_heads: u64,
        key: u64,
        value: u64,
        kernel: u64,
    },
    Mamba2 {
        heads: u64,
        head: u64,
        groups: u64,
        state: u64,
        kernel: u64,
    },
    Mamba1 {
        inner: u64,
        state: u64,
        kernel: u64,
    },
    /// A matrix for each head and no convolution (MiniMax).
    Lightning {
        heads: u64,
        head: u64,
    },
    /// A short convolution alone (LFM2).
    Conv {
        channels: u64,
        kernel: u64,
    },
}

/// How long the model was made for, in tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limit {
    /// As the configuration says.
    pub config: Option<u64>,
    /// With the position scaling that the configuration carries.
    pub scaled: Option<u64>,
    /// That scaling in words: `yarn x4`.
    pub scaling: Option<String>,
    /// What SGLang derives: it takes the factor as 1 where the original length is present.
    pub sglang: Option<u64>,
    /// What vLLM derives.
    pub vllm: Option<u64>,
}

impl Geometry {
    /// Layers with a KV cache over the whole length.
    pub fn full_layers(&self) -> usize {
        self.attentions().filter(|a| a.window.is_none()).count()
    }

    /// Layers with a KV cache over a window.
    pub fn window_layers(&self) -> usize {
        self.attentions().filter(|a| a.window.is_some()).count()
    }

    /// Layers with a fixed state.
    pub fn state_layers(&self) -> usize {
        self.layers.iter().filter(|l| l.state.is_some()).count()
    }

    fn attentions(&self) -> impl Iterator<Item = Attention> + '_ {
        self.layers.iter().filter_map(|l| l.attention)
    }

    /// The layers in words: `16 full, 48 linear`.
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        for (count, what) in [
            (self.full_layers(), "full attention"),
            (self.window_layers(), "window"),
            (self.state_layers(), "linear with a fixed state"),
            (self.draft.len(), "draft"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        format!("{} layers: {}", self.layers.len(), parts.join(", "))
    }
}
