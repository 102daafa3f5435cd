//! Whether a point counts, and why not, in words. Each rule is where its subject is.

mod answers;
mod client;
mod loops;
mod prompts;
mod server;

pub use answers::{DECODE_NONE, Judged, OUTPUT_DOUBT};
pub use loops::looks_like_a_loop;
pub use server::plateau;

use super::plan::Cell;
use super::point::{ClientHealth, Failure, Reason, ServerSide, TokensSource, Validity};
use super::run::Steady;

/// What is known about a cell when it is judged.
#[derive(Debug)]
pub struct Evidence<'a> {
    pub cell: Cell,
    pub ok: u32,
    /// By kind, most frequent first.
    pub failures: &'a [(Failure, u32)],
    /// The cell was given up: one request after another failed.
    pub given_up: bool,
    pub cached_share: Option<f64>,
    pub judged: &'a Judged,
    /// Good answers shorter than asked, and the shortest.
    pub early: u32,
    pub shortest: Option<u64>,
    pub client: ClientHealth,
    /// Median gap between chunks.
    pub gap_ms: Option<f64>,
    /// Median time from when a request should have been sent to when it was.
    pub queue_ms: Option<f64>,
    pub steady: Option<Steady>,
    pub foreign: Option<u64>,
    pub server: ServerSide,
    /// Server samples behind `server`.
    pub samples: u32,
    /// Those of them that were taken while as many of our requests were in flight as ever.
    pub samples_when_full: u32,
    pub decode_tokens: u64,
    pub source: TokensSource,
    /// Mean prompt length as the server counts; `None` if it does not say.
    pub prompt_mean: Option<f64>,
    pub partial: bool,
}

/// The reasons, weightiest first, and what they come to.
pub fn judge(evidence: &Evidence<'_>) -> (Validity, Vec<Reason>) {
    let mut reasons = Vec::new();
    answers::failures(evidence, &mut reasons);
    if evidence.ok > 0 {
        prompts::cache(evidence, &mut reasons);
        answers::output(evidence, &mut reasons);
        client::client(evidence, &mut reasons);
        server::server(evidence, &mut reasons);
        answers::samples(evidence, &mut reasons);
    }
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.weighs));
    let validity = reasons.first().map_or(Validity::Valid, |r| r.weighs);
    (validity, reasons)
}

fn say(reasons: &mut Vec<Reason>, weighs: Validity, text: String) {
    reasons.push(Reason { weighs, text });
}

#[cfg(test)]
mod tests;
