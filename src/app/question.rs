//! The production value: the question, its evidence, the decision.

use super::model::{CheckVerdict, Model, Tried, TriedOutcome, Who};
use crate::bench::point::{Point, Validity};
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

/// One line of the question: what is known of a context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    pub context: u64,
    pub production: bool,
    /// Why it did not serve.
    pub failed: Option<String>,
    pub capacity: Option<f64>,
    /// Card and lowest free bytes while it served.
    pub tightest: Option<(u32, u64)>,
    /// Longest input measured here (tokens), and its median TTFT in ms.
    pub longest: Option<(u64, f64)>,
    /// Decode rate at the longest input, tok/s.
    pub decode: Option<f64>,
    /// That against the shortest input measured in the session, percent.
    pub vs_short: Option<f64>,
    /// Failed requests in all points here.
    pub fails: u32,
    /// Points here that are suspect, and that are void.
    pub suspect: u32,
    pub void: u32,
    /// Checks passed, of.
    pub checks: Option<(usize, usize)>,
    /// Checks that failed or were not run, by name.
    pub checks_open: Vec<String>,
}

/// The evidence of every context of this session, ascending.
pub fn evidence(model: &Model) -> Vec<Evidence> {
    let short = shortest_decode(model);
    let mut contexts: Vec<u64> = model.tried.keys().copied().collect();
    contexts.extend(model.bench.points.iter().filter_map(|p| p.context));
    contexts.sort_unstable();
    contexts.dedup();
    contexts
        .into_iter()
        .map(|context| one(model, context, short))
        .collect()
}

/// Decode rate and input length of the shortest long-context input that counts.
fn shortest_decode(model: &Model) -> Option<(u64, f64)> {
    let points = model.bench.long_context(None);
    points
        .iter()
        .find(|p| p.speed_counts())
        .and_then(|p| Some((p.cell.input, p.decode_tok_s?)))
}

fn one(model: &Model, context: u64, short: Option<(u64, f64)>) -> Evidence {
    let tried = model.tried.get(&context);
    let here: Vec<&Point> = model
        .bench
        .points
        .iter()
        .filter(|p| p.context == Some(context))
        .collect();
    let long = model.bench.long_context(Some(context));
    let longest = long.iter().rev().find(|p| p.speed_counts()).copied();
    let decode = longest.and_then(|p| p.decode_tok_s);
    Evidence {
        context,
        production: model.production() == Some(context),
        failed: tried.and_then(|t| match &t.outcome {
            TriedOutcome::Failed(why) => Some(why.clone()),
            TriedOutcome::Served => None,
        }),
        capacity: tried.and_then(|t| t.capacity),
        tightest: tried.and_then(|t| t.tightest),
        longest: longest.and_then(|p| Some((p.cell.input, p.ttft_ms.p50?))),
        decode,
        vs_short: match (longest, decode, short) {
            (Some(point), Some(decode), Some((input, base)))
                if point.cell.input > input && base > 0.0 =>
            {
                Some((decode / base - 1.0) * 100.0)
            }
            _ => None,
        },
        fails: here.iter().map(|p| p.failed).sum(),
        suspect: count(&here, Validity::Suspect),
        void: count(&here, Validity::Void),
        checks: tried.filter(|t| !t.checks.is_empty()).map(tally),
        checks_open: tried.map(open_checks).unwrap_or_default(),
    }
}

fn count(points: &[&Point], validity: Validity) -> u32 {
    u32::try_from(points.iter().filter(|p| p.validity == validity).count()).unwrap_or(u32::MAX)
}

fn tally(tried: &Tried) -> (usize, usize) {
    let passed = tried
        .checks
        .iter()
        .filter(|c| matches!(c.verdict, CheckVerdict::Passed(_)))
        .count();
    (passed, tried.checks.len())
}

fn open_checks(tried: &Tried) -> Vec<String> {
    let word = |verdict: &CheckVerdict| match verdict {
        CheckVerdict::Passed(_) => None,
        CheckVerdict::Failed(_) => Some("failed"),
        CheckVerdict::NotRun(_) => Some("not run"),
    };
    tried
        .checks
        .iter()
        .filter_map(|c| Some(format!("{} {}", c.name, word(&c.verdict)?)))
        .collect()
}

/// What keeping the running trial would write.
pub fn keep_plan(model: &Model) -> Option<KeepPlan> {
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
