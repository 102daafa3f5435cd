//! The restart as a state machine with intent, evidence and a way back.

mod aftermath;
mod ask;
mod cards;
mod deadline;
mod deps;
mod ending;
mod failure;
mod foreign;
mod ground;
mod guard;
mod holders;
mod intent;
mod keep;
mod last_good;
mod left_over;
mod lock;
mod lost;
pub mod machine;
mod patience;
mod plan;
#[cfg(test)]
mod process_tests;
mod run;
mod steps;
mod tail;
#[cfg(test)]
mod tests_rig;
mod wait;

pub use deadline::set_deadline;
pub use deps::{Deps, Detect, Limits, Smoke};
pub use failure::ending_words;
pub use foreign::{Drain, QUIET_MS, foreign};
pub use ground::{Ground, smoke_question};
pub use guard::{Guarded, guard};
pub use holders::{ContainerName, HeldCard, Holder, NONE_LISTED, Occupied};
pub use intent::{find, remove as forget};
pub use keep::keep;
pub use last_good::{Served, last_good, load as load_last_good, save as save_last_good};
pub use left_over::LeftOver;
pub use lock::{Lock, holder};
pub use plan::{Known, fits, is_trial, start_context};
pub use run::{resume, run, start};
pub use wait::{Answers, CardsChoice};

use crate::engine::start::Progress;
use crate::engine::{EngineError, Facts, Phase};
use crate::memory::Measured;
use crate::service::Config;
use serde::{Deserialize, Serialize};

/// Why a configuration is a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// The newest that passed the smoke test and then served for a minute.
    LastGood,
    /// What ran before this restart; it answered a token then, and nothing better is known.
    Previous,
    /// The value that the operator confirmed.
    Production,
}

impl TargetKind {
    pub fn words(self) -> &'static str {
        match self {
            TargetKind::LastGood => "last good",
            TargetKind::Previous => "previous",
            TargetKind::Production => "production value",
        }
    }
}

/// Where to go back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub kind: TargetKind,
    pub config: Config,
}

/// Why the server is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Nothing runs: a first start.
    Start,
    /// Another context, as a trial.
    Change,
    /// Back to the production value, by the operator's key.
    RollBack,
}

/// A restart to carry out. All ways out are fixed before anything is stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartPlan {
    pub purpose: Purpose,
    /// What runs now, if anything.
    pub from: Option<Config>,
    pub to: Config,
    /// What comes back by itself on failure.
    pub on_failure: Option<Target>,
    /// What `r` brings.
    pub production: Option<u64>,
    /// Unless it is kept within so many seconds, the production value comes back by itself.
    #[serde(default)]
    pub deadline_s: Option<u64>,
}

/// The steps, in order. Each is on disk before it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    Validate,
    Stop,
    WaitCards,
    Start,
    Watch,
    Prove,
}

impl Step {
    /// All of a restart, in order.
    pub const ALL: [Step; 6] = [
        Step::Validate,
        Step::Stop,
        Step::WaitCards,
        Step::Start,
        Step::Watch,
        Step::Prove,
    ];

    /// In words, as the screen and the intent show it.
    pub fn words(self) -> &'static str {
        match self {
            Step::Validate => "validate",
            Step::Stop => "stop",
            Step::WaitCards => "wait for the cards",
            Step::Start => "start",
            Step::Watch => "watch the start",
            Step::Prove => "prove one real token",
        }
    }
}

/// Which leg of the plan a step belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leg {
    /// To the new value.
    Forward,
    /// Back to the target of the plan.
    Back,
}

/// What stands on disk, beside the service, while a restart is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Form of this file.
    pub version: u32,
    pub plan: RestartPlan,
    pub leg: Leg,
    pub step: Step,
    pub since_unix_ms: i64,
    /// Who asked: `user@host`.
    pub by: String,
    /// Why the forward leg failed, once it did.
    pub failure: Option<String>,
    pub simulated: bool,
}

/// A failed start, in the operator's terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartFailure {
    pub step: Step,
    pub phase: Option<Phase>,
    /// One sentence.
    pub cause: String,
    /// The decisive log line, if there is one.
    pub line: Option<String>,
    /// Which way to turn the knob, if known.
    pub advice: Option<String>,
    /// A context to try instead, if the engine names or implies one (the served value of a start that gave less than asked).
    pub suggests: Option<u64>,
    /// Cards that were not free, where that is the cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldCard>,
}

/// How a restart ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The new process answered a real token and serves what was asked.
    Ready { facts: Box<Facts>, took_ms: u64 },
    /// Nothing was stopped: the plan was refused before.
    Refused { failure: StartFailure },
    /// It failed, and the target is back in service, proven with a token.
    RolledBack {
        failure: StartFailure,
        to: Target,
        facts: Box<Facts>,
    },
    /// It failed and the way back failed or does not exist. Nothing more happens without the operator.
    Halted {
        failure: StartFailure,
        back: Option<StartFailure>,
    },
}

/// What a restart reports while it goes on.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A step begins (its intent is on disk).
    Step {
        leg: Leg,
        step: Step,
        context: u64,
    },
    /// Cards that still hold memory, while waiting for their release: index and bytes above the level.
    CardsHeld(Vec<(u32, u64)>),
    /// They were not free in time: the operator's choice is waited for. It is answered by a [`CardsChoice`], and void as soon as
    /// another step begins.
    CardsOccupied(Occupied),
    /// How far a start is.
    Phase {
        phase: Phase,
        progress: Progress,
    },
    /// It seems to get on no more, in words; `None`: it gets on again.
    Still(Option<String>),
    /// What the log of a start that is proven says of memory.
    Measured(Measured),
    /// A cleaned log line of the new process.
    Log(String),
    Ended(Outcome),
}

/// What to do with an unfinished restart that was found at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WayOut {
    /// Finish what was asked.
    GoOn,
    /// Bring the target of the plan back.
    RollBack,
}

impl WayOut {
    /// As the command line names it.
    pub fn word(self) -> &'static str {
        match self {
            WayOut::GoOn => "go-on",
            WayOut::RollBack => "roll-back",
        }
    }
}

/// A failure of the machinery itself: the intent cannot be written, somebody else holds the lock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RampError {
    #[error("another vramp works on this service: {holder}. This one is read-only until it ends")]
    Locked { holder: String },
    #[error("{tried}: {what}. Nothing was changed")]
    Disk { tried: String, what: String },
    #[error(transparent)]
    Engine(#[from] EngineError),
}
