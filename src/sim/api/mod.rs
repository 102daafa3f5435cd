//! The HTTP side: SGLang's pages and its dialect of the OpenAI API.

pub mod generate;
mod pages;
pub mod refuse;
pub mod shape;
mod stats;

use super::args::SimArgs;
use super::core::State;
use super::engine::Engine;
use super::memory::POOL_TOKENS;
use super::raw::{self, Raw};
use super::tokens::Tokenizer;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::HeaderValue;
use axum::http::header::SERVER;
use axum::response::Response;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::net::TcpListener;

/// The model's name.
pub const MODEL: &str = "qwen3.6-27b";
/// The version of SGLang that is played.
pub const VERSION: &str = "0.5.11";
/// Bytes of a request: the longest context as token ids and some more.
const MAX_REQUEST: usize = 32 << 20;

/// Everything that the pages look at.
#[derive(Debug)]
pub struct Rig {
    pub args: SimArgs,
    pub engine: Arc<Engine>,
    pub ready: AtomicBool,
    pub tokenizer: Tokenizer,
    /// The exact schedule, where one is chosen.
    pub raw: Option<Arc<Raw>>,
    /// Output tokens of the last second.
    rate: AtomicU64,
}

impl Rig {
    pub fn new(args: SimArgs) -> Self {
        let engine = Engine::new(args.timing(), POOL_TOKENS, args.seed);
        Rig {
            raw: Raw::new(&args),
            args,
            engine: Arc::new(engine),
            ready: AtomicBool::new(false),
            tokenizer: Tokenizer::default(),
            rate: AtomicU64::new(0),
        }
    }

    /// The last second's output, for the metrics page.
    pub fn set_rate(&self, tokens: u64) {
        self.rate.store(tokens, Ordering::Relaxed);
    }

    /// What it does now, raw streams and all.
    pub fn state(&self) -> State {
        let mut state = self.engine.state();
        if let Some(raw) = &self.raw {
            let totals = raw.truth.totals();
            state.decoding += usize::try_from(totals.running).unwrap_or(usize::MAX);
            state.used_tokens += totals.held;
            state.counters.requests += totals.streams;
            state.counters.prompt_tokens += totals.prompt_tokens;
            state.counters.output_tokens += totals.tokens;
            state.counters.first_tokens += totals.first_tokens;
            state.counters.ttft_s += totals.ttft_ns as f64 / 1e9;
        }
        state
    }

    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Most tokens of an input: SGLang keeps six of the context, or of the pool if that is smaller.
    fn max_input(&self) -> u64 {
        self.args.served().min(POOL_TOKENS).saturating_sub(6)
    }
}

/// Serves until the listener fails.
pub async fn serve(listener: TcpListener, rig: Arc<Rig>) -> std::io::Result<()> {
    if let Some(exact) = rig.raw.clone() {
        return raw::serve(listener, rig.clone(), exact, router(rig)).await;
    }
    // A small chunk must not wait for the answer to the one before.
    let listener = listener.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
    });
    axum::serve(listener, router(rig)).await
}

fn router(rig: Arc<Rig>) -> Router {
    Router::new()
        .route("/health", get(pages::health))
        .route("/health_generate", get(pages::health))
        .route("/ready", get(pages::health))
        .route("/server_info", get(pages::server_info))
        .route("/get_server_info", get(pages::server_info))
        .route("/model_info", get(pages::model_info))
        .route("/get_model_info", get(pages::model_info))
        .route("/v1/models", get(pages::models))
        .route("/metrics", get(pages::metrics))
        .route("/tokenize", post(pages::tokenize))
        .route("/stats", get(stats::read))
        .route("/stats/reset", post(stats::reset))
        .route("/v1/chat/completions", post(generate::chat))
        .route("/v1/completions", post(generate::completions))
        .fallback(pages::not_found)
        .layer(DefaultBodyLimit::max(MAX_REQUEST))
        .layer(axum::middleware::map_response(sign))
        .with_state(rig)
}

/// Every answer says that it is simulated.
async fn sign(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(SERVER, HeaderValue::from_static("vramp-sim"));
    response
}
