//! What differs between inference servers: endpoints, metrics, log phases, failures.

mod bottleneck;
mod chat;
mod detect;
pub(crate) mod http;
mod llamacpp;
pub(crate) mod metrics;
mod models;
mod openai;
mod refusal;
mod sglang;
pub mod start;
mod text;
mod url;
mod vllm;

pub use bottleneck::{Bottleneck, bottleneck};
pub use detect::detect;
pub use llamacpp::settle_cache;
pub use refusal::is_over_limit;
pub use url::normalise_url;

use crate::reading::Reading;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The servers that vramp knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Sglang,
    Vllm,
    #[serde(alias = "llama.cpp")]
    LlamaCpp,
    /// Anything that speaks the OpenAI API; no context is known, nothing can be restarted.
    OpenAi,
}

impl Kind {
    /// The name used in commands, files and on screen.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Sglang => "sglang",
            Kind::Vllm => "vllm",
            Kind::LlamaCpp => "llamacpp",
            Kind::OpenAi => "openai",
        }
    }

    /// Whether memory on the cards grows with the context (llama.cpp), or the KV pool is taken at start and only the capacity
    /// changes (SGLang, vLLM). `None` where it is not known.
    pub fn memory_grows_with_context(self) -> Option<bool> {
        match self {
            Kind::LlamaCpp => Some(true),
            Kind::Sglang | Kind::Vllm => Some(false),
            Kind::OpenAi => None,
        }
    }
}

impl std::str::FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "sglang" => Ok(Kind::Sglang),
            "vllm" => Ok(Kind::Vllm),
            "llamacpp" | "llama.cpp" => Ok(Kind::LlamaCpp),
            "openai" => Ok(Kind::OpenAi),
            _ => Err(format!(
                "unknown engine {text:?}; known are sglang, vllm, llamacpp (or llama.cpp) and openai"
            )),
        }
    }
}

/// An API key. It is sent, never shown, logged or written.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    pub fn new(secret: String) -> Self {
        Key(secret)
    }

    /// The secret itself, for the `Authorization` header alone.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Where the server is and how to address it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Base URL without a trailing slash and without `/v1`: `http://127.0.0.1:30000`.
    pub url: String,
    /// Model name to ask for; the server's first base model if `None`.
    pub model: Option<String>,
    pub key: Option<Key>,
    /// The engine, if the profile names it; otherwise it is found out.
    pub kind: Option<Kind>,
}

/// How far the server is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// It answers requests, as far as its own pages say. Ready for use is proven by a token only.
    Up,
    /// It says that it is loading.
    Loading,
    /// It says that it cannot serve, in its words.
    Down(String),
}

/// The served context and its bounds, in tokens per request where not said otherwise.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Context {
    /// What the flag says, per request.
    pub configured: Reading<u64>,
    /// What a request can really use: the least of the known bounds.
    pub effective: Reading<u64>,
    /// The model's own limit.
    pub model_limit: Reading<u64>,
    /// Tokens in the KV pool, over all requests.
    pub pool_tokens: Reading<u64>,
    /// Fixed request slots (llama.cpp).
    pub slots: Reading<u64>,
    /// Tokens of one slot (llama.cpp).
    pub per_slot: Reading<u64>,
}

impl Context {
    /// KV pool tokens / effective context: how many full-length requests fit at once.
    pub fn capacity(&self) -> Option<f64> {
        let pool = *self.pool_tokens.known()?;
        let context = *self.effective.known().or_else(|| self.configured.known())?;
        (context > 0).then(|| pool as f64 / context as f64)
    }
}

/// What the server says of itself. It changes only with a restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub kind: Kind,
    pub version: Reading<String>,
    /// The model that requests should name.
    pub model: Reading<String>,
    /// The model's file or folder, or its name on a hub, as the server says it; on its own machine, or inside its container.
    #[serde(default)]
    pub model_file: Option<String>,
    pub health: Health,
    pub context: Context,
    /// The server says that it is a simulation.
    pub simulated: bool,
    /// What differs from what one would expect, in words (adapter listed first, capped context, pool below the context …).
    pub notes: Vec<String>,
}

/// A text of a page as it stands there; none where it is empty.
fn text_of(page: &serde_json::Value, name: &str) -> Option<String> {
    let text = page.get(name)?.as_str()?;
    (!text.is_empty()).then(|| text.to_string())
}

/// Time that requests have spent in one stage since the server's start.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spent {
    pub seconds: f64,
    pub requests: u64,
}

/// What the server is doing now, from its metrics page.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Load {
    /// Requests being worked on.
    pub running: Reading<u64>,
    /// Requests waiting in the server's queue.
    pub waiting: Reading<u64>,
    /// Share of the KV pool in use, 0..1 (the fullest pool).
    pub kv_use: Reading<f64>,
    /// Share of the slots for recurrent state in use, 0..1 (hybrid models).
    #[serde(default)]
    pub state_use: Reading<f64>,
    /// Tokens generated a second, over all requests, as the server counts it itself.
    #[serde(default)]
    pub output_tok_s: Reading<f64>,
    /// Mean accepted length of speculative decoding, tokens a step.
    pub accept_length: Reading<f64>,
    /// Counters since the server's start.
    pub prompt_tokens_total: Reading<u64>,
    pub generation_tokens_total: Reading<u64>,
    /// Prefix-cache hit share, 0..1, as the engine counts it.
    pub prefix_cache_hit_rate: Reading<f64>,
    /// Requests preempted or retracted since the start.
    pub preemptions_total: Reading<u64>,
    /// Prompt tokens that were looked for in the prefix cache, and those found there.
    pub cache_queries_total: Reading<u64>,
    pub cache_hits_total: Reading<u64>,
    /// Waiting for a turn, and prefill.
    pub queued: Reading<Spent>,
    pub prefilled: Reading<Spent>,
}

/// One real token, proven.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The text of the answer, cleaned.
    pub text: String,
    pub output_tokens: u64,
    /// `stop`, `length`, …
    pub finish_reason: Option<String>,
    pub ms: u64,
}

/// A failed conversation with the server: what was tried, what happened, what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum EngineError {
    /// Nothing listens there.
    #[error(
        "nothing answers at {url}: connection refused. Is the server started, and is the port right?"
    )]
    Refused { url: String },
    #[error(
        "{url} did not answer within {after_s} s. Is the host right, does a firewall stand between?"
    )]
    Timeout { url: String, after_s: u64 },
    #[error("cannot reach {url}: {what}")]
    Unreachable { url: String, what: String },
    /// 401 or 403.
    #[error(
        "{url} refuses us ({status}): {message}. It wants an API key, or another one: give it with --key-env NAME, or with key_env or key_file of a profile"
    )]
    Denied {
        url: String,
        status: u16,
        message: String,
    },
    /// An answer that is not this API (HTML, other JSON).
    #[error("{url} answers, but not as an inference server: {what}. Is this the right port?")]
    Strange { url: String, what: String },
    /// An error of the server with its own message.
    #[error("{url} answers {status}: {message}")]
    Status {
        url: String,
        status: u16,
        message: String,
    },
    /// The request is longer than the context; figures where the message names them.
    #[error("the request is longer than the served context: {message}")]
    OverLimit {
        message: String,
        asked: Option<u64>,
        limit: Option<u64>,
    },
    #[error("the server is still loading")]
    Loading,
}

/// Where a start is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Starting,
    Downloading,
    LoadingWeights,
    AllocatingPool,
    CapturingGraphs,
    WarmingUp,
    Listening,
}

impl Phase {
    /// In words, as the screen shows it.
    pub fn words(self) -> &'static str {
        match self {
            Phase::Starting => "starting",
            Phase::Downloading => "downloading",
            Phase::LoadingWeights => "loading weights",
            Phase::AllocatingPool => "allocating KV pool",
            Phase::CapturingGraphs => "capturing graphs",
            Phase::WarmingUp => "warming up",
            Phase::Listening => "listening",
        }
    }
}

/// One kind of server at one endpoint.
#[async_trait]
pub trait Engine: Send + Sync {
    fn kind(&self) -> Kind;

    /// Version, model, served context, health.
    async fn facts(&self) -> Result<Facts, EngineError>;

    /// Requests and cache now. Figures that the server does not offer are absent with the reason.
    async fn load(&self) -> Result<Load, EngineError>;

    /// One real token from a prompt that no cache has seen.
    async fn probe(&self) -> Result<Probe, EngineError>;

    /// A short question to see whether the answer makes sense.
    async fn ask(&self, question: &str, max_tokens: u32) -> Result<Probe, EngineError>;

    /// The context that the server must report when `asked` per request was configured over `slots` (llama.cpp rounds up to 256).
    fn expected_context(&self, asked: u64, slots: u64) -> u64;
}

/// No figure of a server that offers none.
fn load_unsupported() -> Load {
    Load {
        running: Reading::unsupported(),
        waiting: Reading::unsupported(),
        kv_use: Reading::unsupported(),
        state_use: Reading::unsupported(),
        output_tok_s: Reading::unsupported(),
        accept_length: Reading::unsupported(),
        prompt_tokens_total: Reading::unsupported(),
        generation_tokens_total: Reading::unsupported(),
        prefix_cache_hit_rate: Reading::unsupported(),
        preemptions_total: Reading::unsupported(),
        cache_queries_total: Reading::unsupported(),
        cache_hits_total: Reading::unsupported(),
        queued: Reading::unsupported(),
        prefilled: Reading::unsupported(),
    }
}

/// No figure, for one reason in words.
fn load_failed(why: &str) -> Load {
    Load {
        running: Reading::failed(why),
        waiting: Reading::failed(why),
        kv_use: Reading::failed(why),
        state_use: Reading::failed(why),
        output_tok_s: Reading::failed(why),
        accept_length: Reading::failed(why),
        prompt_tokens_total: Reading::failed(why),
        generation_tokens_total: Reading::failed(why),
        prefix_cache_hit_rate: Reading::failed(why),
        preemptions_total: Reading::failed(why),
        cache_queries_total: Reading::failed(why),
        cache_hits_total: Reading::failed(why),
        queued: Reading::failed(why),
        prefilled: Reading::failed(why),
    }
}
