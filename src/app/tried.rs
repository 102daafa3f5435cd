//! What is known of a context that was tried.

use crate::bench::checks::Check;
use crate::engine::Facts;
use crate::memory::{Measured, Record};
use crate::service::Config;
use serde::{Deserialize, Serialize};

/// How a context that was tried turned out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriedOutcome {
    /// It served.
    Served,
    /// It did not; why.
    Failed(String),
}

/// Everything known of one context value in this session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// Per request.
    pub context: u64,
    pub config: Option<Config>,
    pub outcome: TriedOutcome,
    /// KV pool / context.
    pub capacity: Option<f64>,
    /// Lowest free memory of the tightest card while it served: card and bytes.
    pub tightest: Option<(u32, u64)>,
    pub checks: Vec<Check>,
    /// Milliseconds from the order to the first real token, if it was started here.
    pub start_ms: Option<u64>,
    /// When the smoke test passed here last, unix ms.
    pub smoke_unix_ms: Option<i64>,
    pub engine: Option<String>,
    pub version: Option<String>,
    /// What the log of its last start here said of memory.
    #[serde(default)]
    pub measured: Option<Measured>,
    /// The forecast with which it was started last, beside what came.
    #[serde(default)]
    pub forecast: Option<Record>,
}

impl Tried {
    pub fn new(context: u64) -> Self {
        Tried {
            context,
            config: None,
            outcome: TriedOutcome::Served,
            capacity: None,
            tightest: None,
            checks: Vec::new(),
            start_ms: None,
            smoke_unix_ms: None,
            engine: None,
            version: None,
            measured: None,
            forecast: None,
        }
    }

    /// Takes what a server with this context says of itself, and what it was started with. What another launch was found to do is not its.
    pub fn serves(&mut self, facts: &Facts, config: Option<Config>) {
        if config.is_some() && self.config.is_some() && config != self.config {
            *self = Tried::new(self.context);
        }
        self.capacity = facts.context.capacity().or(self.capacity);
        self.engine = Some(facts.kind.name().to_string());
        self.version = facts.version.known().cloned();
        self.config = config.or(self.config.take());
    }
}
