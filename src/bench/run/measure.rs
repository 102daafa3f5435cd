//! From a cell's sums to its point.

use super::beside::Beside;
use super::tally::Tally;
use super::window::Steady;
use crate::bench::point::{ClientHealth, Point, Summary, Validity};
use crate::bench::validity::{self, DECODE_NONE, Evidence, Judged};

/// What is known of a cell besides its requests.
#[derive(Debug)]
pub struct Frame {
    pub context: Option<u64>,
    pub started_unix_ms: i64,
    pub ended_unix_ms: i64,
    /// Length of the cell on the steady clock.
    pub seconds: f64,
    /// Tokens that every prompt has in common and that a cache may hold.
    pub template: u64,
    pub cpu_share: Option<f64>,
    pub events_per_read: Option<f64>,
    /// Age of the data at each read.
    pub age: Summary,
    pub kernel_stamps: bool,
    pub given_up: bool,
    pub partial: bool,
    pub simulated: bool,
    pub spread_us: u64,
    pub judged: Judged,
}

/// The point of a finished or stopped cell.
pub fn point(tally: Tally, beside: &Beside, frame: Frame) -> Point {
    let failures = tally.failures_by_count();
    let cached_share = tally
        .cached_share()
        .or_else(|| counted_share(beside, frame.template * u64::from(tally.done())));
    let tpot_ms = tally.tpot.summary();
    let steps = tpot_ms.p50.map_or(0.0, |ms| frame.seconds * 1e3 / ms);
    let server_side = beside.server_side(steps);
    let (told, sum) = tally.prompts_told;
    let steady = tally.window.steady();
    let gap = tally.gap.summary_of_streams();
    let client_queue_ms = tally.client_queue.summary();
    let client = ClientHealth {
        cpu_share: frame.cpu_share,
        lag_p99_ms: frame.age.p99,
        kernel_stamps: frame.kernel_stamps,
        events_per_read: frame.events_per_read,
    };
    let (validity, reasons) = validity::judge(&Evidence {
        cell: tally.cell,
        ok: tally.ok,
        failures: &failures,
        given_up: frame.given_up,
        cached_share,
        judged: &frame.judged,
        early: tally.early,
        shortest: tally.shortest,
        client,
        gap_ms: gap.p50,
        queue_ms: client_queue_ms.p50,
        steady,
        foreign: beside.foreign,
        server: server_side,
        samples: beside.samples,
        samples_when_full: beside.fullest.1,
        decode_tokens: tally.decode_tokens,
        source: tally.source,
        prompt_mean: (told > 0).then(|| sum as f64 / f64::from(told)),
        partial: frame.partial,
    });
    let output_tok_s = output_rate(&tally, steady);
    let tokens_per_answer =
        (tally.ok > 0).then(|| tally.output_tokens as f64 / f64::from(tally.ok));
    let requests_s = output_tok_s
        .zip(tokens_per_answer)
        .filter(|(_, tokens)| *tokens > 0.0)
        .map(|(rate, tokens)| rate / tokens);
    let has_targets = tally.slo.is_some();
    Point {
        cell: tally.cell,
        context: frame.context,
        started_unix_ms: frame.started_unix_ms,
        ended_unix_ms: frame.ended_unix_ms,
        total: tally.done(),
        ok: tally.ok,
        failed: tally.failed,
        input_tokens: tally.input_tokens,
        output_tokens: tally.output_tokens,
        tokens_source: tally.source,
        tokens_per_chunk: tally.tokens_per_chunk(),
        ttft_ms: tally.ttft.summary(),
        client_queue_ms,
        queue_ms: beside.queue_ms(),
        prefill_ms: match tally.prefill_ms.summary() {
            Summary { n: 0, .. } => beside.prefill_ms(),
            each => each,
        },
        first_answer_ms: tally.first_answer.summary(),
        itl_ms: tally.itl.summary_of_streams(),
        itl_estimated: tally.itl_estimated,
        chunk_gap_ms: gap,
        stalls: tally.stalls(),
        decode_tok_s: tpot_ms
            .p50
            .filter(|ms| *ms > 0.0 && tally.decode_tokens >= DECODE_NONE)
            .map(|ms| 1000.0 / ms),
        tpot_ms,
        e2e_ms: tally.e2e.summary(),
        output_tok_s,
        prefill_tok_s: tally.prefill.quantile(0.5),
        requests_s,
        slo: tally.slo,
        goodput: requests_s
            .filter(|_| has_targets)
            .map(|rate| rate * (f64::from(tally.met) / f64::from(tally.ok.max(1)))),
        slo_share: has_targets.then(|| f64::from(tally.met) / f64::from(tally.done().max(1))),
        steady_s: steady.map(|steady| steady.seconds),
        spread_us: frame.spread_us,
        repeat: false,
        cached_share,
        validity: if tally.ok == 0 {
            Validity::Void
        } else {
            validity
        },
        reasons,
        client,
        server_side,
        cards: beside.card_use(frame.seconds, tally.output_tokens),
        failures,
        requests: tally.records,
        partial: frame.partial,
        simulated: frame.simulated,
    }
}

/// Output tokens a second: those inside the steady part, or all from the first start to the last end where there was none.
fn output_rate(tally: &Tally, steady: Option<Steady>) -> Option<f64> {
    if let (Some(steady), Some(per_chunk)) = (steady, tally.tokens_per_chunk()) {
        return Some(steady.chunks as f64 * per_chunk / steady.seconds);
    }
    let (from, to) = tally.span_ns?;
    let seconds = to.saturating_sub(from) as f64 / 1e9;
    (seconds > 0.0 && tally.output_tokens > 0).then(|| tally.output_tokens as f64 / seconds)
}

/// What the server's counters say where its answers do not, beyond the `common` tokens of all prompts together.
fn counted_share(beside: &Beside, common: u64) -> Option<f64> {
    let (queries, hits) = beside.cache().filter(|(queries, _)| *queries > 0)?;
    Some(hits.saturating_sub(common) as f64 / queries as f64)
}
