//! What was asked: prompts that a cache knew, or that had another length.

use super::{Evidence, say};
use crate::bench::point::{Reason, Validity};
use crate::units::thousands;

/// Share of prompt tokens from a cache above which a point is void.
const CACHED_LIMIT: f64 = 0.01;
/// Tokens at the beginning of a prompt that another may share by chance: a cache that counts single tokens finds them.
const BY_CHANCE: f64 = 2.0;
/// By how much a prompt's length may differ from the one asked for.
const LENGTH_LIMIT: f64 = 0.005;

pub fn cache(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    let limit = CACHED_LIMIT.max(BY_CHANCE / evidence.cell.input.max(1) as f64);
    if let Some(share) = evidence.cached_share.filter(|share| *share > limit) {
        let text = format!(
            "{:.0} % of the prompt tokens came from the prefix cache",
            share * 100.0
        );
        say(reasons, Validity::Void, text);
    }
    if let Some(mean) = evidence.prompt_mean {
        let asked = evidence.cell.input as f64;
        if (mean - asked).abs() > (asked * LENGTH_LIMIT).max(1.0) {
            let text = format!(
                "prompts had {} tokens instead of {}",
                thousands(mean.round() as u64),
                thousands(evidence.cell.input)
            );
            say(reasons, Validity::Suspect, text);
        }
    }
}
