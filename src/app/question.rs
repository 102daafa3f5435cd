//! The production value: the question, its evidence, the decision.

use super::evidence::Evidence;
use super::model::{Activity, Model, Who};
use crate::engine::Facts;
use crate::service::Config;
use crate::units::thousands;
use serde::{Deserialize, Serialize};

/// What keeping means: the value, and what it replaces.
#[derive(Debug, Clone, PartialEq)]
pub struct KeepPlan {
    pub config: Config,
    pub previous: Option<u64>,
    /// The launch was edited: it is kept as well.
    pub launch_changed: bool,
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

impl Decided {
    /// What is kept of a decision; `facts` are those of the server that runs it.
    pub fn new(plan: &KeepPlan, who: &Who, profile: &str, at: &Served<'_>) -> Self {
        let facts = at.facts;
        Decided {
            unix_ms: at.unix_ms,
            who: who.clone(),
            profile: profile.to_string(),
            value: plan.config.context,
            previous: plan.previous,
            engine: facts.map(|f| f.kind.name().to_string()),
            version: facts.and_then(|f| f.version.known().cloned()),
            model: facts.and_then(|f| f.model.known().cloned()),
            simulated: at.simulated,
            evidence: at.evidence.clone(),
        }
    }

    /// In words; `how` it was written.
    pub fn words(&self, how: &str) -> String {
        let value = thousands(self.value);
        match self.previous {
            Some(previous) => format!(
                "{value} is the production value now, before it was {} · {how}",
                thousands(previous)
            ),
            None => format!("{value} is the production value now · {how}"),
        }
    }
}

/// The server at the moment of a decision, and what speaks for and against each value.
pub struct Served<'a> {
    pub unix_ms: i64,
    pub facts: Option<&'a Facts>,
    pub simulated: bool,
    pub evidence: Vec<Evidence>,
}

/// What keeping the running trial would write, or why nothing can be kept now.
pub fn keep_plan(model: &Model) -> Result<KeepPlan, String> {
    if let Some(why) = &model.settings.read_only {
        return Err(format!("{why}: nothing can be decided from here"));
    }
    let Some(config) = model.rig.config.clone() else {
        return Err("no trial of vramp is running: nothing to decide".to_string());
    };
    if model.rig.unfinished {
        return Err(
            "an unfinished restart is on disk: Enter on the first task shows it; decide after that"
                .to_string(),
        );
    }
    if model
        .running
        .as_ref()
        .is_some_and(|r| r.activity == Activity::Restart)
    {
        return Err("a restart is under way: decide when it is over".to_string());
    }
    if !model.rig.up() {
        return Err(
            "the server does not answer: nothing to decide until it serves again".to_string(),
        );
    }
    if !model.on_trial() {
        let value = model.production().map_or("?".to_string(), thousands);
        return Err(format!(
            "the server runs its production value of {value}: nothing to decide. c sets another context"
        ));
    }
    if model.rig.smoke_passed.is_none() {
        return Err(
            "the running trial is not proven since it was found: run the smoke test first"
                .to_string(),
        );
    }
    Ok(KeepPlan {
        launch_changed: model.rig.edited_launch,
        previous: model.production(),
        config,
    })
}

/// A trial is ready to be judged: the question comes up by itself, or waits in the header while something else has the keys.
pub fn arrive(model: &mut Model) {
    let busy = !model.dialogs.is_empty() || model.config.editing.is_some();
    match keep_plan(model) {
        Ok(plan) if !busy => model.dialogs.push(super::dialog::Dialog::Question(
            crate::confirm::Pending::new(plan),
        )),
        Ok(_) => model.question_waits = true,
        Err(_) => {}
    }
}
