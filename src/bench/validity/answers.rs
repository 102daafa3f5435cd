//! What came back: failures, output that is no result, too little of it.

use super::{Evidence, looks_like_a_loop, say};
use crate::bench::point::{Reason, TokensSource, Validity};
use crate::units::thousands;

/// What a reason begins with when the output itself is no result, so that its speed is not offered.
pub const OUTPUT_DOUBT: &str = "the output is not a result: ";

/// The least decode tokens that make a rate, and those that make a sure one.
pub const DECODE_NONE: u64 = 8;
const DECODE_SURE: u64 = 32;
/// Fewer answers than this cannot show how much they differ.
const ANSWERS_SURE: u32 = 3;

/// What the answers themselves were.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judged {
    /// Answers that were looked at.
    pub judged: u32,
    pub loops: u32,
    /// What the first of them repeats.
    pub unit: Option<String>,
    pub empty: u32,
}

impl Judged {
    /// Looks at one answer.
    pub fn add(&mut self, text: &str) {
        self.judged += 1;
        if text.trim().is_empty() {
            self.empty += 1;
        } else if let Some(unit) = looks_like_a_loop(text) {
            self.loops += 1;
            self.unit.get_or_insert(unit);
        }
    }
}
pub fn failures(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    let failed: u32 = evidence.failures.iter().map(|(_, n)| n).sum();
    let total = failed + evidence.ok;
    let Some((most, _)) = evidence.failures.first() else {
        return;
    };
    let given_up = if evidence.given_up {
        format!(", given up after {total} of {}", evidence.cell.requests)
    } else {
        String::new()
    };
    if evidence.ok == 0 {
        let text = format!("all {total} requests failed{given_up}: {}", most.message);
        say(reasons, Validity::Void, text);
    } else {
        let text = format!(
            "{failed} of {total} requests failed{given_up}: {}",
            most.message
        );
        say(reasons, Validity::Suspect, text);
    }
}
pub fn output(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    let judged = evidence.judged;
    if let Some(unit) = judged.unit.as_ref() {
        let text = format!(
            "{OUTPUT_DOUBT}{} of {} answers repeat {unit:?} over and over",
            judged.loops, judged.judged
        );
        say(reasons, Validity::Suspect, text);
    }
    if judged.empty > 0 {
        let text = format!(
            "{OUTPUT_DOUBT}{} of {} answers are empty",
            judged.empty, judged.judged
        );
        say(reasons, Validity::Suspect, text);
    }
    if let Some(shortest) = evidence.shortest.filter(|_| evidence.early > 0) {
        let text = format!(
            "{OUTPUT_DOUBT}{} of {} answers ended early, the shortest after {} of {} tokens",
            evidence.early,
            evidence.ok,
            thousands(shortest),
            thousands(evidence.cell.output)
        );
        say(reasons, Validity::Suspect, text);
    }
}
pub fn samples(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    if evidence.ok < ANSWERS_SURE {
        let answers = match evidence.ok {
            1 => "one answer".to_string(),
            n => format!("{n} answers"),
        };
        let text = format!("{answers} only: that is too few to tell how much they differ");
        say(reasons, Validity::Suspect, text);
    }
    if evidence.decode_tokens < DECODE_SURE {
        let text = format!(
            "only {} tokens to measure the decode rate from",
            evidence.decode_tokens
        );
        say(reasons, Validity::Suspect, text);
    }
    match evidence.source {
        TokensSource::Usage | TokensSource::Tokenizer => {}
        TokensSource::Chunks => say(
            reasons,
            Validity::Suspect,
            "the server does not count its tokens: they are estimated from the events of the stream"
                .to_string(),
        ),
    }
}
