//! The JSON of a walk.

use crate::engine::Phase;
use crate::ramp::{HeldCard, Outcome, StartFailure};
use crate::units::thousands;
use serde::Serialize;

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// A trial is in service.
    Trial,
    /// The production value is.
    Production,
    /// It failed, or was given up, and an earlier value is back in service, proven.
    RolledBack,
    /// Nothing was stopped.
    Refused,
    /// No server is in service, and nothing more happens without the operator.
    Halted,
    /// The operator stopped it; what was in service before is.
    Interrupted,
}

/// What programs read. Contexts are tokens per request; what is not known is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    pub outcome: Ending,
    pub simulated: bool,
    /// What is in service now.
    pub context: Option<u64>,
    pub production: Option<u64>,
    /// When the production value comes back unless the trial is kept, Unix milliseconds.
    pub deadline: Option<i64>,
    pub steps: Vec<Step>,
    /// Why it is not what was asked for.
    pub reason: Option<String>,
}

/// One restart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// What was asked for.
    pub context: u64,
    pub outcome: &'static str,
    /// From the order to the first real token, where that came.
    pub took_s: Option<f64>,
    /// How far a start that failed had come.
    pub phase: Option<Phase>,
    pub cause: Option<String>,
    /// The decisive line of its log.
    pub line: Option<String>,
    pub advice: Option<String>,
    pub suggested_context: Option<u64>,
    /// Cards that were not free, with who holds them.
    pub held: Vec<HeldCard>,
    /// The benchmark that was run afterwards, by which vramp runs finds it.
    pub run: Option<i64>,
}

impl Step {
    /// How the restart at `context` ended.
    pub fn of(context: u64, outcome: &Outcome) -> Self {
        let (word, took_ms, failure) = match outcome {
            Outcome::Ready { took_ms, .. } => ("ready", Some(*took_ms), None),
            Outcome::Refused { failure } => ("refused", None, Some(failure)),
            Outcome::RolledBack { failure, .. } => ("rolled_back", None, Some(failure)),
            Outcome::Halted { failure, .. } => ("halted", None, Some(failure)),
        };
        let text = |field: fn(&StartFailure) -> Option<&String>| failure.and_then(field).cloned();
        Step {
            context,
            outcome: word,
            took_s: took_ms.map(|ms| ms as f64 / 1000.0),
            phase: failure.and_then(|failure| failure.phase),
            cause: text(|failure| Some(&failure.cause)),
            line: text(|failure| failure.line.as_ref()),
            advice: text(|failure| failure.advice.as_ref()),
            suggested_context: failure.and_then(|failure| failure.suggests),
            held: held(outcome),
            run: None,
        }
    }
}

/// The cards that the failure is about, or else that of the way back.
fn held(outcome: &Outcome) -> Vec<HeldCard> {
    let (failure, back) = match outcome {
        Outcome::Ready { .. } => return Vec::new(),
        Outcome::Refused { failure } | Outcome::RolledBack { failure, .. } => (failure, None),
        Outcome::Halted { failure, back } => (failure, back.as_ref()),
    };
    match back {
        Some(back) if failure.held.is_empty() => back.held.clone(),
        _ => failure.held.clone(),
    }
}

/// A walk for a person, with what can be done next.
pub fn summary(end: &Document) -> String {
    let context = end.context.map_or("nothing".to_string(), thousands);
    let production = end.production.map_or("none".to_string(), thousands);
    let mut text = match end.outcome {
        Ending::Trial => format!(
            "{context} is in service as a trial (production {production})\n\
             keep it: vramp ramp --to {n} --confirm {n}\n\
             take it back: vramp ramp --roll-back\n",
            n = end.context.unwrap_or_default()
        ),
        Ending::Production => format!("{context} is in service, the production value\n"),
        Ending::RolledBack => {
            format!("{context} is back in service, proven (production {production})\n")
        }
        Ending::Refused => format!("nothing was stopped; {context} is in service\n"),
        Ending::Halted => "no server is in service; nothing more happens without you\n".to_string(),
        Ending::Interrupted => {
            format!("interrupted; {context} is in service (production {production})\n")
        }
    };
    if let Some(at) = end.deadline {
        text.push_str(&format!(
            "unless it is kept, {production} comes back by itself at {}\n",
            crate::clock::date_time(at)
        ));
    }
    if end.simulated {
        text.insert_str(0, "SIMULATED\n");
    }
    text
}
