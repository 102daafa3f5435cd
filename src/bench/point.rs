//! What was measured in one cell.

use super::options::Slo;
use super::plan::Cell;
use super::validity::OUTPUT_DOUBT;
use serde::{Deserialize, Serialize};

/// Whether a point counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Validity {
    Valid,
    /// It counts with a stated doubt.
    Suspect,
    /// It does not count.
    Void,
}

impl Validity {
    pub fn word(self) -> &'static str {
        match self {
            Validity::Valid => "valid",
            Validity::Suspect => "suspect",
            Validity::Void => "void",
        }
    }
}

/// One reason for a doubt, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub weighs: Validity,
    pub text: String,
}

/// Where the token counts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokensSource {
    Usage,
    Tokenizer,
    /// Last resort; shown with `~`.
    Chunks,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    Refused,
    TimeoutConnect,
    TimeoutFirstByte,
    TimeoutTotal,
    /// A gap between chunks longer than allowed.
    Stalled,
    Status(u16),
    ContextExceeded,
    /// The stream ended without its end.
    CutOff,
    /// An error object inside a 200 stream.
    ErrorInStream,
    Empty,
    /// The answer is not this protocol.
    Protocol,
}

/// One failed request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    /// The server's own message or ours, cleaned.
    pub message: String,
}

/// A distribution in milliseconds. Percentiles that n does not support are `None`: p90 from 30 samples, p95 from 60, p99 from 300.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Summary {
    pub n: u64,
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    /// 95 % interval of the median by order statistics, from 6 independent samples: requests are, the tokens of one are not.
    #[serde(default)]
    pub p50_low: Option<f64>,
    #[serde(default)]
    pub p50_high: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
}

/// What the client itself cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ClientHealth {
    /// CPU share of one core, 0..1 and above.
    pub cpu_share: Option<f64>,
    /// Age of the data when it was read, 99th percentile, from 300 reads: by the kernel's stamp of its arrival, where it has none
    /// since this thread woke up.
    pub lag_p99_ms: Option<f64>,
    /// Times are the kernel's, so that this lag is in no figure.
    #[serde(default)]
    pub kernel_stamps: bool,
    pub events_per_read: Option<f64>,
}

/// What the server said beside it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ServerSide {
    pub running_max: Option<u64>,
    pub waiting_max: Option<u64>,
    pub kv_use_max: Option<f64>,
    pub accept_length: Option<f64>,
    /// Requests preempted or retracted during the cell.
    #[serde(default)]
    pub preemptions: Option<u64>,
    /// The most requests running and waiting at once, foreign ones included.
    #[serde(default)]
    pub in_server_max: Option<u64>,
}

/// What one card did meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CardUse {
    pub index: u32,
    /// Bytes.
    pub used_peak: u64,
    /// Bytes.
    pub free_min: u64,
    pub busy_mean: Option<f64>,
    pub joules_per_token: Option<f64>,
}

/// One finished request, for the record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Milliseconds after the start of the cell, of the first byte written.
    pub start_ms: f64,
    /// From the moment at which it should have been sent to that first byte: what the client or its limit held it back.
    #[serde(default)]
    pub client_queue_ms: Option<f64>,
    pub ttft_ms: Option<f64>,
    /// First token of the answer itself, when reasoning came first.
    pub first_answer_ms: Option<f64>,
    pub e2e_ms: Option<f64>,
    pub tpot_ms: Option<f64>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    pub chunks: u64,
    pub failure: Option<Failure>,
}

/// One measured cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub cell: Cell,
    /// Context that the server served when this was measured.
    pub context: Option<u64>,
    pub started_unix_ms: i64,
    pub ended_unix_ms: i64,
    pub total: u32,
    pub ok: u32,
    pub failed: u32,
    /// Failures by kind with one message each, most frequent first.
    pub failures: Vec<(Failure, u32)>,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub tokens_source: TokensSource,
    pub tokens_per_chunk: Option<f64>,
    pub ttft_ms: Summary,
    /// From when a request should have been sent to when it was: not part of TTFT.
    #[serde(default)]
    pub client_queue_ms: Summary,
    /// The server's own figures, where it has them: waiting for its turn, and prefill. Only n and the mean where they come from a
    /// metrics page.
    #[serde(default)]
    pub queue_ms: Summary,
    #[serde(default)]
    pub prefill_ms: Summary,
    pub first_answer_ms: Summary,
    pub itl_ms: Summary,
    /// The tokens of an answer were shared out evenly over its events, because the server does not count them as they come:
    /// shown with `~`.
    #[serde(default)]
    pub itl_estimated: bool,
    pub chunk_gap_ms: Summary,
    /// Gaps over 250 ms and over ten times the median.
    pub stalls: u64,
    pub tpot_ms: Summary,
    pub e2e_ms: Summary,
    /// Output tokens a second over all requests, inside the measured window.
    pub output_tok_s: Option<f64>,
    /// 1 / median TPOT.
    pub decode_tok_s: Option<f64>,
    /// Input tokens a second until the first token, median.
    pub prefill_tok_s: Option<f64>,
    pub requests_s: Option<f64>,
    /// Targets that `goodput` is about.
    #[serde(default)]
    pub slo: Slo,
    /// Requests a second that met the targets; `None` without targets.
    #[serde(default)]
    pub goodput: Option<f64>,
    /// Share of all requests, failed ones included, that met them.
    #[serde(default)]
    pub slo_share: Option<f64>,
    /// Seconds of the steady part that rates are taken from; `None` where there was none.
    #[serde(default)]
    pub steady_s: Option<f64>,
    /// Microseconds between the first requests.
    #[serde(default)]
    pub spread_us: u64,
    /// The first level measured again.
    #[serde(default)]
    pub repeat: bool,
    /// Share of prompt tokens that came from a cache, beyond the template.
    pub cached_share: Option<f64>,
    pub validity: Validity,
    pub reasons: Vec<Reason>,
    pub client: ClientHealth,
    pub server_side: ServerSide,
    pub cards: Vec<CardUse>,
    pub requests: Vec<RequestRecord>,
    /// Stopped before all requests were done.
    pub partial: bool,
    pub simulated: bool,
}

impl Point {
    /// A point of which nothing is known.
    pub fn empty(cell: Cell) -> Point {
        Point {
            cell,
            context: None,
            started_unix_ms: 0,
            ended_unix_ms: 0,
            total: 0,
            ok: 0,
            failed: 0,
            failures: Vec::new(),
            input_tokens: 0,
            output_tokens: 0,
            tokens_source: TokensSource::Usage,
            tokens_per_chunk: None,
            ttft_ms: Summary::default(),
            client_queue_ms: Summary::default(),
            queue_ms: Summary::default(),
            prefill_ms: Summary::default(),
            first_answer_ms: Summary::default(),
            itl_ms: Summary::default(),
            itl_estimated: false,
            chunk_gap_ms: Summary::default(),
            stalls: 0,
            tpot_ms: Summary::default(),
            e2e_ms: Summary::default(),
            output_tok_s: None,
            decode_tok_s: None,
            prefill_tok_s: None,
            requests_s: None,
            slo: Slo::default(),
            goodput: None,
            slo_share: None,
            steady_s: None,
            spread_us: 0,
            repeat: false,
            cached_share: None,
            validity: Validity::Valid,
            reasons: Vec::new(),
            client: ClientHealth::default(),
            server_side: ServerSide::default(),
            cards: Vec::new(),
            requests: Vec::new(),
            partial: false,
            simulated: false,
        }
    }

    /// Adds a reason, and what it weighs.
    pub fn doubt(&mut self, weighs: Validity, text: String) {
        self.validity = self.validity.max(weighs);
        self.reasons.push(Reason { weighs, text });
        self.reasons
            .sort_by_key(|reason| std::cmp::Reverse(reason.weighs));
    }

    /// The output throughput, where it may be offered as a result: not from void points, nor from answers that loop, are empty or end
    /// early.
    pub fn offered_output(&self) -> Option<f64> {
        self.output_tok_s.filter(|_| self.speed_counts())
    }

    /// Whether its speed may be offered as a result: not if the point is void, and not if its output looped, was empty or ended early.
    pub fn speed_counts(&self) -> bool {
        let sound = |reason: &Reason| !reason.text.starts_with(OUTPUT_DOUBT);
        self.validity != Validity::Void
            && self.decode_tok_s.is_some()
            && self.reasons.iter().all(sound)
    }
}
