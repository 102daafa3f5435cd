//! What was really sent, and when: the yardstick for whoever measures this server.

use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Stamps that are kept of single requests, over all of them.
const STAMPS: usize = 2_000_000;
/// The longest time that is told apart, an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Done,
    /// Cut off as asked for.
    Cut,
    /// The client left.
    Left,
}

/// Counts since the start or the last reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    pub streams: u64,
    pub refused: u64,
    pub failed: u64,
    pub done: u64,
    pub cut: u64,
    pub left: u64,
    pub writes: u64,
    /// Writes that the socket did not take at once: the client reads too slowly.
    pub blocked: u64,
    pub events: u64,
    pub tokens: u64,
    pub prompt_tokens: u64,
    pub first_tokens: u64,
    pub ttft_ns: u64,
    pub running: u64,
    pub running_max: u64,
    /// Tokens that running streams hold.
    pub held: u64,
}

/// One stream that is over. Times are those of the steady clock, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Served {
    pub number: u64,
    pub prompt: u64,
    pub received_ns: u64,
    /// When each write was taken by the socket; the first carries the first token.
    pub sent_ns: Vec<u64>,
    /// Tokens sent.
    pub tokens: u32,
}

/// One write of a running stream.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub at_ns: u64,
    pub due_ns: u64,
    /// The write before it, or the request itself.
    pub before_ns: u64,
    pub first: bool,
    pub events: u32,
    pub tokens: u32,
    pub blocked: bool,
}

/// The record.
#[derive(Debug, Default)]
pub struct Truth(Mutex<Record>);

#[derive(Debug, Default)]
struct Record {
    totals: Totals,
    ttft: Times,
    gap: Times,
    late: Times,
    e2e: Times,
    first_ns: Option<u64>,
    last_ns: u64,
    newest: VecDeque<(Served, End)>,
    stamps: usize,
}

/// Times to three digits, the mean exactly.
#[derive(Debug)]
struct Times {
    sum_ns: u128,
    /// `None` only if the fixed bounds were refused, which they are not.
    histogram: Option<Histogram<u64>>,
}

impl Default for Times {
    fn default() -> Self {
        Times {
            sum_ns: 0,
            histogram: Histogram::new_with_bounds(1_000, LONGEST_NS, 3).ok(),
        }
    }
}

impl Times {
    fn note(&mut self, ns: u64) {
        self.sum_ns += u128::from(ns);
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(ns);
        }
    }

    fn json(&self) -> Value {
        let some = self.histogram.as_ref().filter(|h| !h.is_empty());
        let at = |share: f64| some.map(|h| h.value_at_quantile(share) as f64 / 1e6);
        json!({
            "n": some.map_or(0, Histogram::len),
            "mean": some.map(|h| self.sum_ns as f64 / h.len() as f64 / 1e6),
            "p50": at(0.5),
            "p90": at(0.9),
            "p99": at(0.99),
            "min": some.map(|h| h.min() as f64 / 1e6),
            "max": some.map(|h| h.max() as f64 / 1e6),
        })
    }
}

impl Truth {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn totals(&self) -> Totals {
        self.record().totals
    }

    pub fn refused(&self) {
        self.record().totals.refused += 1;
    }

    pub fn failed(&self) {
        self.record().totals.failed += 1;
    }

    /// A stream begins; `holds` tokens at most.
    pub fn began(&self, prompt: u64, holds: u64, received_ns: u64) {
        let mut record = self.record();
        record.first_ns.get_or_insert(received_ns);
        let totals = &mut record.totals;
        totals.streams += 1;
        totals.prompt_tokens += prompt;
        totals.running += 1;
        totals.running_max = totals.running_max.max(totals.running);
        totals.held += holds;
    }

    pub fn sent(&self, sent: &Sent) {
        let mut record = self.record();
        let gap = sent.at_ns.saturating_sub(sent.before_ns);
        if sent.first {
            record.ttft.note(gap);
            record.totals.first_tokens += 1;
            record.totals.ttft_ns += gap;
        } else {
            record.gap.note(gap);
        }
        record.late.note(sent.at_ns.saturating_sub(sent.due_ns));
        record.last_ns = sent.at_ns;
        let totals = &mut record.totals;
        totals.writes += 1;
        totals.blocked += u64::from(sent.blocked);
        totals.events += u64::from(sent.events);
        totals.tokens += u64::from(sent.tokens);
    }

    /// A stream is over that began with the same `holds`.
    pub fn ended(&self, served: Served, end: End, holds: u64) {
        let mut record = self.record();
        let totals = &mut record.totals;
        match end {
            End::Done => totals.done += 1,
            End::Cut => totals.cut += 1,
            End::Left => totals.left += 1,
        }
        // A reset may have come in between.
        totals.running = totals.running.saturating_sub(1);
        totals.held = totals.held.saturating_sub(holds);
        if end == End::Done
            && let Some(last) = served.sent_ns.last()
        {
            let e2e = last.saturating_sub(served.received_ns);
            record.e2e.note(e2e);
        }
        record.stamps += served.sent_ns.len();
        record.newest.push_back((served, end));
        while record.stamps > STAMPS
            && let Some((gone, _)) = record.newest.pop_front()
        {
            record.stamps -= gone.sent_ns.len();
        }
    }

    /// Forgets everything but the streams that run.
    pub fn reset(&self) {
        let mut record = self.record();
        let Totals { running, held, .. } = record.totals;
        *record = Record::default();
        record.totals.running = running;
        record.totals.running_max = running;
        record.totals.held = held;
    }

    /// The record as JSON, with the newest `requests` streams one by one.
    pub fn json(&self, requests: usize) -> Value {
        let record = self.record();
        let totals = record.totals;
        let span = record
            .first_ns
            .map_or(0, |first| record.last_ns.saturating_sub(first));
        let rate = |count: u64| (span > 0).then(|| count as f64 / (span as f64 / 1e9));
        let skip = record.newest.len().saturating_sub(requests);
        let newest: Vec<Value> = record.newest.iter().skip(skip).map(served).collect();
        json!({
            "simulated": true,
            "clock": "CLOCK_MONOTONIC, nanoseconds",
            "streams": totals.streams,
            "refused": totals.refused,
            "failed": totals.failed,
            "done": totals.done,
            "cut": totals.cut,
            "left_by_client": totals.left,
            "running": totals.running,
            "running_max": totals.running_max,
            "prompt_tokens": totals.prompt_tokens,
            "tokens": totals.tokens,
            "events": totals.events,
            "writes": totals.writes,
            "blocked_writes": totals.blocked,
            "span_s": span as f64 / 1e9,
            "events_s": rate(totals.events),
            "tokens_s": rate(totals.tokens),
            "ttft_ms": record.ttft.json(),
            "chunk_gap_ms": record.gap.json(),
            "late_ms": record.late.json(),
            "e2e_ms": record.e2e.json(),
            "requests": newest,
        })
    }
}

fn served((served, end): &(Served, End)) -> Value {
    json!({
        "number": served.number,
        "prompt_tokens": served.prompt,
        "tokens": served.tokens,
        "received_ns": served.received_ns,
        "first_token_ns": served.sent_ns.first(),
        "sent_ns": served.sent_ns,
        "end": match end {
            End::Done => "done",
            End::Cut => "cut",
            End::Left => "left by client",
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_adds_up() {
        let truth = Truth::default();
        truth.began(10, 15, 1_000_000);
        let mut before_ns = 1_000_000;
        for (n, at_ns) in [51_000_000_u64, 61_000_000, 71_000_000]
            .into_iter()
            .enumerate()
        {
            truth.sent(&Sent {
                at_ns,
                due_ns: at_ns - 5_000,
                before_ns,
                first: n == 0,
                events: 1,
                tokens: 1,
                blocked: false,
            });
            before_ns = at_ns;
        }
        let served = Served {
            number: 1,
            prompt: 10,
            received_ns: 1_000_000,
            sent_ns: vec![51_000_000, 61_000_000, 71_000_000],
            tokens: 3,
        };
        truth.ended(served, End::Done, 15);
        let json = truth.json(5);
        let close = |value: &Value, wanted: f64| {
            let value = value.as_f64().expect("a number");
            assert!((value / wanted - 1.0).abs() < 0.002, "{value} {wanted}");
        };
        close(&json["ttft_ms"]["mean"], 50.0);
        close(&json["chunk_gap_ms"]["max"], 10.0);
        close(&json["e2e_ms"]["p50"], 70.0);
        close(&json["span_s"], 0.07);
        assert_eq!(json["requests"][0]["first_token_ns"], 51_000_000);
        assert_eq!((truth.totals().running, truth.totals().held), (0, 0));
        truth.reset();
        assert_eq!(truth.json(5)["ttft_ms"]["mean"], Value::Null);
        assert_eq!(truth.json(5)["requests"], json!([]));
    }
}
