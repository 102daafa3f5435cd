//! The JSON of a run.

use super::{RunReport, kind_word};
use crate::bench::options::Slo;
use crate::bench::plan::Arrivals;
use crate::bench::point::{
    CardUse, ClientHealth, Point, ServerSide, Summary, TokensSource, Validity,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// What programs read. Times are milliseconds, rates are per second, sizes are bytes; what is not known, or what the number of samples
/// does not support, is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    pub tool: Tool,
    pub server: Server,
    pub simulated: bool,
    /// Something that was asked for is missing.
    pub partial: bool,
    pub run: Run,
    pub points: Vec<PointDocument>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tool {
    pub name: &'static str,
    pub version: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Server {
    pub engine: &'static str,
    pub version: Option<String>,
    pub model: String,
    pub context: Option<u64>,
    pub url: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    pub id: i64,
    pub name: Option<String>,
    pub plan: String,
    pub seed: u64,
    pub started_unix_ms: i64,
    pub ended_unix_ms: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PointDocument {
    pub concurrency: u32,
    /// Requests a second of an open loop.
    pub rate: Option<f64>,
    pub arrivals: &'static str,
    pub isl: u64,
    pub osl: u64,
    pub requests: Requests,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub tokens_source: TokensSource,
    pub tokens_per_chunk: Option<f64>,
    pub ttft_ms: Summary,
    pub first_answer_ms: Summary,
    pub itl_ms: Summary,
    /// The tokens of an answer were shared out evenly over its events.
    pub itl_estimated: bool,
    pub chunk_gap_ms: Gaps,
    pub tpot_ms: Summary,
    pub e2e_ms: Summary,
    /// In the server, where it tells.
    pub queue_ms: Summary,
    /// In the client: late starts.
    pub client_queue_ms: Summary,
    pub prefill_ms: Summary,
    pub output_tok_s: Option<f64>,
    pub decode_tok_s: Option<f64>,
    pub prefill_tok_s: Option<f64>,
    pub requests_s: Option<f64>,
    pub slo: Option<Slo>,
    pub goodput: Option<f64>,
    pub slo_share: Option<f64>,
    pub steady_s: Option<f64>,
    pub start_spread_us: u64,
    /// The first level measured again.
    pub repeat: bool,
    pub cached_share: Option<f64>,
    pub validity: Validity,
    pub reasons: Vec<Reason>,
    pub client: ClientHealth,
    pub server_side: ServerSide,
    pub gpus: Vec<CardUse>,
    pub context: Option<u64>,
    pub started_unix_ms: i64,
    pub ended_unix_ms: i64,
    pub partial: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Requests {
    pub total: u32,
    pub ok: u32,
    pub failed: u32,
    pub by_kind: BTreeMap<String, u32>,
    /// One message of each kind, as the server or the client said it.
    pub messages: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gaps {
    #[serde(flatten)]
    pub spread: Summary,
    /// Gaps over 250 ms and over ten times the median.
    pub stalls: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    pub weighs: Validity,
    pub text: String,
}

/// A run as its document.
pub fn document(run: &RunReport) -> Document {
    let row = &run.row;
    Document {
        tool: Tool {
            name: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
        },
        server: Server {
            engine: row.engine.name(),
            version: row.engine_version.clone(),
            model: row.model.clone(),
            context: row.context,
            url: row.url.clone(),
        },
        simulated: run.simulated(),
        partial: run.partial(),
        run: Run {
            id: row.id,
            name: row.name.clone(),
            plan: row.plan.clone(),
            seed: row.seed,
            started_unix_ms: row.started_unix_ms,
            ended_unix_ms: row.ended_unix_ms,
        },
        points: run.points.iter().map(point).collect(),
    }
}

fn point(point: &Point) -> PointDocument {
    let cell = &point.cell;
    let mut by_kind = BTreeMap::new();
    let mut messages = BTreeMap::new();
    for (failure, count) in &point.failures {
        let kind = kind_word(&failure.kind);
        *by_kind.entry(kind.clone()).or_insert(0) += count;
        messages.entry(kind).or_insert(failure.message.clone());
    }
    PointDocument {
        concurrency: cell.concurrency,
        rate: cell.arrivals.rate().map(|rate| rate.per_second()),
        arrivals: match cell.arrivals {
            Arrivals::Closed => "closed",
            Arrivals::Constant { .. } => "constant",
            Arrivals::Poisson { .. } => "poisson",
        },
        isl: cell.input,
        osl: cell.output,
        requests: Requests {
            total: point.total,
            ok: point.ok,
            failed: point.failed,
            by_kind,
            messages,
        },
        input_tokens: point.input_tokens,
        output_tokens: point.output_tokens,
        tokens_source: point.tokens_source,
        tokens_per_chunk: point.tokens_per_chunk,
        ttft_ms: point.ttft_ms,
        first_answer_ms: point.first_answer_ms,
        itl_ms: point.itl_ms,
        itl_estimated: point.itl_estimated,
        chunk_gap_ms: Gaps {
            spread: point.chunk_gap_ms,
            stalls: point.stalls,
        },
        tpot_ms: point.tpot_ms,
        e2e_ms: point.e2e_ms,
        queue_ms: point.queue_ms,
        client_queue_ms: point.client_queue_ms,
        prefill_ms: point.prefill_ms,
        output_tok_s: point.output_tok_s,
        decode_tok_s: point.decode_tok_s,
        prefill_tok_s: point.prefill_tok_s,
        requests_s: point.requests_s,
        slo: point.slo.is_some().then_some(point.slo),
        goodput: point.goodput,
        slo_share: point.slo_share,
        steady_s: point.steady_s,
        start_spread_us: point.spread_us,
        repeat: point.repeat,
        cached_share: point.cached_share,
        validity: point.validity,
        reasons: point
            .reasons
            .iter()
            .map(|reason| Reason {
                weighs: reason.weighs,
                text: reason.text.clone(),
            })
            .collect(),
        client: point.client,
        server_side: point.server_side,
        gpus: point.cards.clone(),
        context: point.context,
        started_unix_ms: point.started_unix_ms,
        ended_unix_ms: point.ended_unix_ms,
        partial: point.partial,
    }
}
