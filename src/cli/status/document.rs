//! The JSON of a status.

use crate::engine::{self, Facts, Load};
use crate::profile::Profile;
use crate::ramp::{Intent, Leg};
use crate::reading::Reading;
use serde::Serialize;

/// What programs read: lengths in tokens, shares 0 to 1, times in Unix milliseconds; null where it is not known.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Document {
    pub url: String,
    /// `None` for a bare URL.
    pub profile: Option<String>,
    pub engine: Option<&'static str>,
    pub version: Option<String>,
    pub model: Option<String>,
    pub simulated: bool,
    /// It answered one real token now.
    pub ready: bool,
    pub context: Context,
    /// KV pool / effective context.
    pub capacity: Option<f64>,
    pub running: Option<u64>,
    pub waiting: Option<u64>,
    /// Requests that are not ours.
    pub foreign: Option<u64>,
    pub kv_use: Option<f64>,
    pub state_use: Option<f64>,
    pub accept_length: Option<f64>,
    pub prefix_cache_hit_rate: Option<f64>,
    /// As the server counts it.
    pub output_tok_s: Option<f64>,
    /// Since its start.
    pub prompt_tokens: Option<u64>,
    pub generated_tokens: Option<u64>,
    pub preemptions: Option<u64>,
    /// What requests wait for, while some do.
    pub bottleneck: Option<&'static str>,
    pub service: Option<String>,
    /// What a reboot brings.
    pub production: Option<u64>,
    /// The context on trial; null: none is.
    pub trial: Option<u64>,
    /// When the production value comes back unless the trial is kept.
    pub deadline: Option<i64>,
    pub intent: Option<Unfinished>,
    /// Who works on the service.
    pub lock: Option<String>,
    pub notes: Vec<String>,
}

/// The served context and its bounds.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Context {
    pub configured: Option<u64>,
    pub effective: Option<u64>,
    pub model_limit: Option<u64>,
    pub pool_tokens: Option<u64>,
    pub slots: Option<u64>,
    pub per_slot: Option<u64>,
}

/// A restart that was not finished.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unfinished {
    pub step: &'static str,
    /// It was on the way back.
    pub back: bool,
    pub from: Option<u64>,
    pub to: u64,
    /// What it goes back to.
    pub on_failure: Option<u64>,
    pub failure: Option<String>,
    pub by: String,
    pub since: i64,
}

impl Unfinished {
    pub fn of(intent: &Intent) -> Self {
        let plan = &intent.plan;
        let target = plan.on_failure.as_ref();
        Unfinished {
            step: intent.step.words(),
            back: intent.leg == Leg::Back,
            from: plan.from.as_ref().map(|config| config.context),
            to: plan.to.context,
            on_failure: target.map(|target| target.config.context),
            failure: intent.failure.clone(),
            by: intent.by.clone(),
            since: intent.since_unix_ms,
        }
    }
}

fn value<T: Clone>(reading: &Reading<T>) -> Option<T> {
    reading.known().cloned()
}

impl Document {
    /// Nothing is known but the profile.
    pub fn new(profile: &Profile) -> Self {
        Document {
            url: profile.endpoint.url.clone(),
            profile: profile.file.is_some().then(|| profile.name.clone()),
            production: profile.production,
            ..Document::default()
        }
    }

    /// Takes what the server says of itself.
    pub fn facts(&mut self, facts: &Facts) {
        let engine::Context {
            configured,
            effective,
            model_limit,
            pool_tokens,
            slots,
            per_slot,
        } = &facts.context;
        self.engine = Some(facts.kind.name());
        self.version = value(&facts.version);
        self.model = value(&facts.model);
        self.simulated = facts.simulated;
        self.capacity = facts.context.capacity();
        self.context = Context {
            configured: value(configured),
            effective: value(effective),
            model_limit: value(model_limit),
            pool_tokens: value(pool_tokens),
            slots: value(slots),
            per_slot: value(per_slot),
        };
    }

    /// Takes what it is doing.
    pub fn load(&mut self, load: &Load) {
        self.running = value(&load.running);
        self.waiting = value(&load.waiting);
        self.kv_use = value(&load.kv_use);
        self.state_use = value(&load.state_use);
        self.accept_length = value(&load.accept_length);
        self.prefix_cache_hit_rate = value(&load.prefix_cache_hit_rate);
        self.output_tok_s = value(&load.output_tok_s);
        self.prompt_tokens = value(&load.prompt_tokens_total);
        self.generated_tokens = value(&load.generation_tokens_total);
        self.preemptions = value(&load.preemptions_total);
    }
}
