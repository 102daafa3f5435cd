//! The raw mode: streams on an exact schedule, written straight to the socket, and the truth about when each part was sent.
//!
//! Requests are read on the server's own runtime; a thread that does nothing else writes the tokens when they are due. Everything but
//! streams is answered by the same pages as always.

mod ask;
mod connection;
mod http;
mod pacer;
mod script;
mod truth;

pub use connection::serve;
pub use truth::Truth;

use super::args::SimArgs;
use super::timing::Timing;
use script::Voice;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// How the raw streams run.
#[derive(Debug, Clone, PartialEq)]
pub struct Manner {
    pub ttft_ns: u64,
    /// Per output token.
    pub itl_ns: u64,
    pub tokens_per_chunk: u32,
    pub events_per_write: u32,
    pub stall_ns: u64,
    /// Every Nth; 0 for none.
    pub stall_every: u64,
    pub cut_every: u64,
    pub fail_every: u64,
}

/// What the raw streams of a server share.
#[derive(Debug)]
pub struct Raw {
    pub manner: Manner,
    pub truth: Truth,
    voice: Arc<Voice>,
    /// Streams asked for so far.
    asked: AtomicU64,
}

impl Raw {
    /// Where the options choose an exact schedule.
    pub fn new(args: &SimArgs) -> Option<Arc<Raw>> {
        let Timing::Raw {
            ttft_s,
            itl_s,
            tokens_per_chunk,
        } = args.timing()
        else {
            return None;
        };
        let raw = &args.raw;
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        Some(Arc::new(Raw {
            manner: Manner {
                ttft_ns: ns(ttft_s),
                itl_ns: ns(itl_s),
                tokens_per_chunk,
                events_per_write: raw.events_per_write.unwrap_or(1).max(1),
                stall_ns: ns(raw.stall_ms.unwrap_or(1000.0).max(0.0) / 1000.0),
                stall_every: raw.stall_every.unwrap_or(0),
                cut_every: raw.cut_every.unwrap_or(0),
                fail_every: raw.fail_every.unwrap_or(0),
            },
            truth: Truth::default(),
            voice: Arc::new(Voice::new(
                args.seed,
                args.loops,
                raw.reasoning_tokens.unwrap_or(0),
            )),
            asked: AtomicU64::new(0),
        }))
    }
}

/// Nanoseconds of the machine's steady clock (`CLOCK_MONOTONIC`), which every process of the machine reads alike.
pub fn steady_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
