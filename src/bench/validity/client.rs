//! Whether it was the client: its thread, late reads, requests that were not in flight or not sent in time.

use super::{Evidence, say};
use crate::bench::plan::Arrivals;
use crate::bench::point::{Reason, Validity};

/// Share of one core above which the client may have been the limit.
const CPU_LIMIT: f64 = 0.9;
/// Age of the data at the read, as a share of the gap between chunks, above which reading was late.
const LAG_LIMIT: f64 = 0.1;
/// Milliseconds that half of the requests of an open loop may be sent late.
const LATE_LIMIT: f64 = 5.0;
/// Samples of the server's gauges, with all of ours in flight, that show how many requests reach it: servers refresh them at their own pace,
/// and each may have missed some.
const GAUGES_SURE: u32 = 8;
/// By how much the requests in flight may fall short of the level asked for.
const LEVEL_LIMIT: f64 = 0.05;

pub fn client(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    let busy = evidence.client.cpu_share;
    if let Some(share) = busy.filter(|share| *share > CPU_LIMIT) {
        let text = format!(
            "the client was the limit: its thread was busy {:.0} % of the time",
            share * 100.0
        );
        say(reasons, Validity::Void, text);
    }
    late_reads(evidence, reasons);
    match evidence.cell.arrivals {
        Arrivals::Closed => level(evidence, reasons),
        Arrivals::Constant { .. } | Arrivals::Poisson { .. } => schedule(evidence, reasons),
    }
    if evidence.steady.is_none() {
        let text = "too short for a steady part: output rate from the first start to the last end";
        say(reasons, Validity::Valid, text.to_string());
    }
    if evidence.partial {
        let text = "stopped before all requests were done".to_string();
        say(reasons, Validity::Valid, text);
    }
}

/// Data that waits for the reader makes every time late, unless the kernel said when it came.
fn late_reads(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    let (Some(lag), Some(gap)) = (evidence.client.lag_p99_ms, evidence.gap_ms) else {
        return;
    };
    if lag <= gap * LAG_LIMIT {
        return;
    }
    let late =
        format!("data waited up to {lag:.1} ms for the client (p99), chunks are {gap:.1} ms apart");
    if evidence.client.kernel_stamps {
        let text = format!("{late}; times are the kernel's, taken on arrival");
        say(reasons, Validity::Suspect, text);
    } else {
        let text = format!("the client was the limit: {late}");
        say(reasons, Validity::Void, text);
    }
}

/// Little's law of a closed loop: what is in flight on average is the level that was asked for.
fn level(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    // With failures the level falls for another reason, and one round of requests has no steady level.
    let level = evidence.cell.concurrency;
    let rounds = evidence.ok >= level.saturating_mul(2) && evidence.failures.is_empty();
    if !rounds {
        return;
    }
    let least = f64::from(level) * (1.0 - LEVEL_LIMIT);
    if let Some(steady) = evidence.steady.filter(|steady| steady.in_flight < least) {
        let text = format!(
            "the client was the limit: {:.1} requests in flight on average instead of {level}",
            steady.in_flight
        );
        say(reasons, Validity::Void, text);
    }
    if let Some(most) = evidence.server.in_server_max
        && evidence.samples_when_full >= GAUGES_SURE
        && (most as f64) < least
    {
        let text = format!(
            "no more than {most} of {level} requests reached the server at once: something before it holds them back"
        );
        say(reasons, Validity::Void, text);
    }
}

/// An open loop is one only while its requests go when they should.
fn schedule(evidence: &Evidence<'_>, reasons: &mut Vec<Reason>) {
    if let Some(late) = evidence.queue_ms.filter(|ms| *ms > LATE_LIMIT) {
        let text = format!(
            "half of the requests were sent {late:.0} ms late or later: this rate keeps more than {} in flight",
            evidence.cell.concurrency
        );
        say(reasons, Validity::Suspect, text);
    }
}
