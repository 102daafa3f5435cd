//! From a cell's sums to its point.

use super::beside::Beside;
use super::tally::Tally;
use crate::bench::options::Slo;
use crate::bench::point::{ClientHealth, Point, Summary, Validity};
use crate::bench::validity::{self, DECODE_NONE, Evidence};

/// What is known of a cell besides its requests.
#[derive(Debug)]
pub struct Frame {
    pub context: Option<u64>,
    pub started_unix_ms: i64,
    pub ended_unix_ms: i64,
    /// Length of the cell on the steady clock.
    pub seconds: f64,
    pub cpu_share: Option<f64>,
    pub events_per_read: Option<f64>,
    pub given_up: bool,
    pub partial: bool,
    pub simulated: bool,
}

/// The point of a finished or stopped cell.
pub fn point(tally: Tally, beside: &Beside, frame: &Frame) -> Point {
    let failures = tally.failures_by_count();
    let cached_share = tally
        .cache_told
        .filter(|(prompt, _)| *prompt > 0)
        .map(|(prompt, cached)| cached as f64 / prompt as f64);
    let (told, sum) = tally.prompts_told;
    let steady = tally.window.steady();
    let (validity, reasons) = validity::judge(&Evidence {
        cell: tally.cell,
        ok: tally.ok,
        failures: &failures,
        given_up: frame.given_up,
        cached_share,
        texts: &tally.texts,
        early: tally.early,
        shortest: tally.shortest,
        cpu_share: frame.cpu_share,
        steady,
        foreign: beside.foreign,
        server: beside.server,
        samples: beside.samples,
        decode_tokens: tally.decode_tokens,
        source: tally.source,
        prompt_mean: (told > 0).then(|| sum as f64 / f64::from(told)),
        partial: frame.partial,
    });
    let tokens_per_chunk = tally.tokens_per_chunk();
    let span = tally
        .span_ns
        .map(|(from, to)| to.saturating_sub(from) as f64 / 1e9)
        .filter(|seconds| *seconds > 0.0);
    let output_tok_s = match (steady, tokens_per_chunk) {
        (Some(steady), Some(per_chunk)) => Some(steady.chunks as f64 * per_chunk / steady.seconds),
        _ => span
            .filter(|_| tally.output_tokens > 0)
            .map(|seconds| tally.output_tokens as f64 / seconds),
    };
    let tokens_per_answer =
        (tally.ok > 0).then(|| tally.output_tokens as f64 / f64::from(tally.ok));
    let tpot_ms = tally.tpot.summary();
    let decode_tok_s = tpot_ms
        .p50
        .filter(|ms| *ms > 0.0 && tally.decode_tokens >= DECODE_NONE)
        .map(|ms| 1000.0 / ms);
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
        tokens_per_chunk,
        ttft_ms: tally.ttft.summary(),
        client_queue_ms: Summary::default(),
        queue_ms: Summary::default(),
        prefill_ms: Summary::default(),
        first_answer_ms: tally.first_answer.summary(),
        itl_ms: tally.itl.summary(),
        itl_estimated: false,
        chunk_gap_ms: tally.gap.summary(),
        stalls: tally.stalls(),
        tpot_ms,
        e2e_ms: tally.e2e.summary(),
        output_tok_s,
        decode_tok_s,
        prefill_tok_s: tally.prefill.quantile(0.5),
        requests_s: output_tok_s
            .zip(tokens_per_answer)
            .filter(|(_, tokens)| *tokens > 0.0)
            .map(|(rate, tokens)| rate / tokens),
        slo: Slo::default(),
        goodput: None,
        slo_share: None,
        steady_s: steady.map(|s| s.seconds),
        spread_us: 0,
        repeat: false,
        cached_share,
        validity: if tally.ok == 0 {
            Validity::Void
        } else {
            validity
        },
        reasons,
        client: ClientHealth {
            cpu_share: frame.cpu_share,
            lag_p99_ms: None,
            events_per_read: frame.events_per_read,
        },
        server_side: beside.server,
        cards: beside.card_use(frame.seconds, tally.output_tokens),
        failures,
        requests: tally.records,
        partial: frame.partial,
        simulated: frame.simulated,
    }
}
