//! What every restart of one service works with, as far as it does not change from one to the next.

use super::{Deps, Detect, Limits, Lock, Smoke};
use crate::clock::Clock;
use crate::engine::{self, Endpoint, Engine, EngineError};
use crate::gpu::Snapshot;
use crate::host::Host;
use crate::profile::Profile;
use crate::service::Service;
use async_trait::async_trait;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

const SMOKE_QUESTION: &str = "What is the capital of France? Answer in one short sentence.";
const SMOKE_TOKENS: u32 = 48;

/// How long a left-over may take to end by itself, where the profile does not say it of the server.
const GRACE: Duration = Duration::from_secs(10);

/// What is asked of a server before it counts as one that makes sense.
pub fn smoke_question() -> Smoke {
    Smoke {
        question: SMOKE_QUESTION.to_string(),
        max_tokens: SMOKE_TOKENS,
        judge: crate::bench::smoke::judge_smoke,
    }
}

/// What a restart works with, as far as it does not change.
#[derive(Clone)]
pub struct Ground {
    pub endpoint: Endpoint,
    pub host: Arc<dyn Host>,
    pub service: Arc<dyn Service>,
    pub gpus: watch::Receiver<Snapshot>,
    /// The state directory of the service.
    pub dir: PathBuf,
    /// Who asks: `user@host`.
    pub by: String,
    pub clock: Clock,
    pub limits: Limits,
    /// Cards of the server by index; empty: all.
    pub cards: Vec<u32>,
}

impl Ground {
    /// For the service of `profile`.
    pub fn new(
        profile: &Profile,
        host: Arc<dyn Host>,
        service: Arc<dyn Service>,
        gpus: watch::Receiver<Snapshot>,
        dir: PathBuf,
        by: String,
        clock: Clock,
    ) -> Self {
        Ground {
            endpoint: profile.endpoint.clone(),
            host,
            service,
            gpus,
            dir,
            by,
            clock,
            limits: Limits {
                stuck_after: Duration::from_secs(profile.stuck_after_s),
                release_after: Duration::from_secs(profile.release_after_s),
                stop_grace: profile.stop_grace_s.map_or(GRACE, Duration::from_secs),
            },
            cards: profile.cards.clone(),
        }
    }

    /// Everything for one restart. Sends nothing to the server.
    pub async fn deps(&self, lock: Arc<Lock>, simulated: bool) -> Deps {
        let reader = match self.endpoint.kind {
            Some(_) => engine::detect(&self.endpoint).await.ok().map(Arc::from),
            None => None,
        };
        Deps {
            host: Arc::clone(&self.host),
            service: Arc::clone(&self.service),
            detect: Arc::new(Finder(self.endpoint.clone())),
            reader,
            gpus: self.gpus.clone(),
            cards: self.cards.clone(),
            limits: self.limits,
            answers: None,
            smoke: Some(smoke_question()),
            lock,
            dir: self.dir.clone(),
            by: self.by.clone(),
            simulated,
            clock: self.clock,
        }
    }
}

/// Finds the engine at the endpoint of the profile.
struct Finder(Endpoint);

#[async_trait]
impl Detect for Finder {
    async fn detect(&self) -> Result<Box<dyn Engine>, EngineError> {
        engine::detect(&self.0).await
    }
}
