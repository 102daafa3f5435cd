//! What speaks for and against each context of a session.

use super::bench::newest;
use super::model::Model;
use super::tried::{Tried, TriedOutcome};
use crate::bench::checks::Verdict;
use crate::bench::plan::PlanKind;
use crate::bench::point::{Point, Validity};
use serde::{Deserialize, Serialize};

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
    /// That against a much shorter input at the same context, percent.
    pub vs_short: Option<f64>,
    /// Tokens of that shorter input.
    #[serde(default)]
    pub short: Option<u64>,
    /// Failed requests in all points here; `None`: nothing was measured here.
    pub fails: Option<u32>,
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
    let tried: Vec<&Tried> = model.tried.values().collect();
    gather(&tried, &model.bench.points, model.production())
}

/// The same from what is on record.
pub fn gather(tried: &[&Tried], points: &[Point], production: Option<u64>) -> Vec<Evidence> {
    let mut contexts: Vec<u64> = tried.iter().map(|t| t.context).collect();
    contexts.extend(points.iter().filter_map(|p| p.context));
    contexts.sort_unstable();
    contexts.dedup();
    contexts
        .into_iter()
        .map(|context| {
            let tried = tried.iter().copied().find(|t| t.context == context);
            one(context, tried, points, production)
        })
        .collect()
}

/// How much longer the longest input must be for a comparison that says something.
const MUCH_LONGER: u64 = 4;

/// The shortest of `long` that counts, if it is much shorter than `than`: its input length and decode rate. Same context, so that what
/// the figures tell apart is the input length alone.
fn baseline(long: &[&Point], than: u64) -> Option<(u64, f64)> {
    let short = long.iter().find(|p| p.speed_counts())?;
    (short.cell.input.saturating_mul(MUCH_LONGER) <= than)
        .then_some((short.cell.input, short.decode_tok_s?))
}

fn one(context: u64, tried: Option<&Tried>, points: &[Point], production: Option<u64>) -> Evidence {
    let here: Vec<&Point> = points
        .iter()
        .filter(|p| p.context == Some(context))
        .collect();
    let long = newest(points, PlanKind::LongContext, Some(context));
    let longest = long.iter().rev().find(|p| p.speed_counts()).copied();
    let decode = longest.and_then(|p| p.decode_tok_s);
    let short = longest.and_then(|p| baseline(&long, p.cell.input));
    Evidence {
        context,
        production: production == Some(context),
        failed: tried.and_then(|t| match &t.outcome {
            TriedOutcome::Failed(why) => Some(why.clone()),
            TriedOutcome::Served => None,
        }),
        capacity: tried.and_then(|t| t.capacity),
        tightest: tried.and_then(|t| t.tightest),
        longest: longest.and_then(|p| Some((p.cell.input, p.ttft_ms.p50?))),
        decode,
        vs_short: match (decode, short) {
            (Some(decode), Some((_, base))) if base > 0.0 => Some((decode / base - 1.0) * 100.0),
            _ => None,
        },
        short: short.map(|(input, _)| input),
        fails: (!here.is_empty()).then(|| here.iter().map(|p| p.failed).sum()),
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
        .filter(|c| matches!(c.verdict, Verdict::Passed(_)))
        .count();
    (passed, tried.checks.len())
}

fn open_checks(tried: &Tried) -> Vec<String> {
    let word = |verdict: &Verdict| match verdict {
        Verdict::Passed(_) => None,
        Verdict::Failed(_) => Some("failed"),
        Verdict::NotRun(_) => Some("not run"),
    };
    tried
        .checks
        .iter()
        .filter_map(|c| Some(format!("{} {}", c.kind.short_name(), word(&c.verdict)?)))
        .collect()
}
