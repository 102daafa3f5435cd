//! The production value: the question, its evidence, the decision.

use super::evidence::{Evidence, evidence};
use super::model::{Model, Who};
use crate::service::Config;
use serde::{Deserialize, Serialize};

/// What keeping means: the value, and what it replaces.
#[derive(Debug, Clone, PartialEq)]
pub struct KeepPlan {
    pub config: Config,
    pub previous: Option<u64>,
    /// The launch was edited: it is kept as well.
    pub launch_changed: bool,
    pub evidence: Vec<Evidence>,
}

/// A decision on record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    pub unix_ms: i64,
    pub who: Who,
    pub profile: String,
    pub value: u64,
    pub previous: Option<u64>,
    pub engine: Option<String>,
    pub version: Option<String>,
    pub model: Option<String>,
    pub simulated: bool,
    pub evidence: Vec<Evidence>,
}

/// What keeping the running trial would write.
pub fn keep_plan(model: &Model) -> Option<KeepPlan> {
    if model.settings.read_only.is_some() {
        return None;
    }
    let config = model.rig.config.clone()?;
    let launch = model.profile.as_ref().and_then(super::config::launch);
    Some(KeepPlan {
        launch_changed: launch.is_some_and(|l| *l != config.launch),
        previous: model.production(),
        evidence: evidence(model),
        config,
    })
}

/// A trial is ready to be judged: the question comes up by itself, or waits in the header while something else has the keys.
pub fn arrive(model: &mut Model) {
    let busy = !model.dialogs.is_empty() || model.config.editing.is_some();
    match keep_plan(model) {
        Some(plan) if !busy => model.dialogs.push(super::dialog::Dialog::Question(
            crate::confirm::Pending::new(plan),
        )),
        Some(_) => model.question_waits = true,
        None => {}
    }
}
