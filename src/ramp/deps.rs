//! What a restart works with.

use super::{Answers, Lock};
use crate::clock::Clock;
use crate::engine::{Engine, EngineError};
use crate::gpu::Snapshot;
use crate::host::Host;
use crate::service::Service;
use async_trait::async_trait;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Finds out what answers at the address of the service.
#[async_trait]
pub trait Detect: Send + Sync {
    async fn detect(&self) -> Result<Box<dyn Engine>, EngineError>;
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A start without any progress, and an answer, for this long have failed.
    pub stuck_after: Duration,
    /// How long the cards may take to let go.
    pub release_after: Duration,
    /// How long a left-over that is told to end may take before it is killed.
    pub stop_grace: Duration,
}

/// A question whose answer must make sense before the server counts as ready.
#[derive(Debug, Clone)]
pub struct Smoke {
    pub question: String,
    pub max_tokens: u32,
    /// The text and its tokens; the error says what is wrong with it (empty, a loop).
    pub judge: fn(&str, u64) -> Result<(), String>,
}

/// The world of one restart.
#[derive(Clone)]
pub struct Deps {
    /// Where the service runs and the intent lies.
    pub host: Arc<dyn Host>,
    pub service: Arc<dyn Service>,
    pub detect: Arc<dyn Detect>,
    /// Reads the log of a start while nothing answers yet, where the kind is known; what runs before the restart is asked else.
    pub reader: Option<Arc<dyn Engine>>,
    pub gpus: watch::Receiver<Snapshot>,
    /// Cards of the server by index; empty: all.
    pub cards: Vec<u32>,
    pub limits: Limits,
    /// Who is asked while cards stay occupied; `None`: nobody, and the restart goes back then.
    pub answers: Option<Answers>,
    pub smoke: Option<Smoke>,
    /// Held for as long as the restart goes on.
    pub lock: Arc<Lock>,
    /// The state directory of the service.
    pub dir: PathBuf,
    /// Who asks: `user@host`.
    pub by: String,
    pub simulated: bool,
    /// The clock that also stamps the readings of the cards.
    pub clock: Clock,
}
