//! How long each stage of a request may take. One stalled stream costs one request, never the run.

use crate::bench::point::{Failure, FailureKind};
use crate::bench::stream::Reader;
use std::time::Duration;

/// The longest wait for a first token that is ever granted.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Limits of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    pub connect: Duration,
    /// From the request, or the last sign of life after it, to the first token: queueing and prefill.
    pub first_token: Duration,
    /// Between two signs of life once tokens flow.
    pub gap: Duration,
    pub total: Duration,
}

impl Deadlines {
    /// Limits for requests of `input` tokens in and `output` out, `concurrency` of them at once.
    ///
    /// The first token may take 2 minutes and 20 ms for each prompt token that may be worked on before it (50 tok/s of prefill, a
    /// busy CPU's pace), the whole a second more for each output token.
    pub fn for_request(input: u64, output: u64, concurrency: u32) -> Self {
        let ahead = input.saturating_mul(u64::from(concurrency.max(1)));
        let first_token = Duration::from_secs(120)
            .saturating_add(Duration::from_millis(ahead.saturating_mul(20)))
            .min(LONGEST_WAIT);
        Deadlines {
            connect: Duration::from_secs(10),
            first_token,
            gap: Duration::from_secs(120),
            total: first_token
                .saturating_add(Duration::from_secs(120))
                .saturating_add(Duration::from_secs(output)),
        }
    }
}

/// Where a stream is, as far as waiting goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// No token yet.
    Waiting,
    /// Tokens flow.
    Flowing,
    /// The answer has its reason to end; only counts can follow.
    Finished,
    /// `[DONE]` or an error came; only the end of the body can follow.
    Settled,
}

/// How long counts may trail the answer's end. No figure waits for it, but the next request does.
const TRAILER: Duration = Duration::from_secs(10);
/// How long the end of the body may trail `[DONE]`; a connection that needs longer is not kept.
const BODY_END: Duration = Duration::from_millis(250);

impl Stage {
    pub fn of(reader: &Reader) -> Self {
        let answer = reader.answer();
        if reader.is_settled() {
            Stage::Settled
        } else if answer.finish_reason.is_some() {
            Stage::Finished
        } else if answer.first_token_ns.is_some() {
            Stage::Flowing
        } else {
            Stage::Waiting
        }
    }

    /// The silence that this stage allows.
    pub fn patience(self, limits: &Deadlines) -> Duration {
        match self {
            Stage::Waiting => limits.first_token,
            Stage::Flowing => limits.gap,
            Stage::Finished => TRAILER.min(limits.gap),
            Stage::Settled => BODY_END,
        }
    }

    /// What it means when the patience ends; `None` if the answer is whole anyway.
    pub fn overdue(self, limits: &Deadlines) -> Option<Failure> {
        let seconds = self.patience(limits).as_secs_f64();
        let (kind, message) = match self {
            Stage::Waiting => (
                FailureKind::TimeoutFirstByte,
                format!("no token within {seconds:.1} s"),
            ),
            Stage::Flowing => (
                FailureKind::Stalled,
                format!("nothing came for {seconds:.1} s in the middle of the answer"),
            ),
            Stage::Finished | Stage::Settled => return None,
        };
        Some(Failure { kind, message })
    }
}
