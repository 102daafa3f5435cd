//! What the tests put into a database.

use super::{NewRun, NewSession, Store};
use crate::app::task::{Task, TaskKind, TaskState};
use crate::bench::plan::{Cell, Plan, PlanKind};
use crate::bench::point::{
    ClientHealth, Failure, FailureKind, Point, Reason, RequestRecord, ServerSide, Summary,
    TokensSource, Validity,
};
use crate::engine::Kind;
use std::path::PathBuf;

pub(crate) fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data/vramp.db");
    (dir, path)
}

pub(crate) fn session(store: &mut Store, profile: &str) -> i64 {
    store
        .new_session(&NewSession {
            profile,
            url: "http://me:secret@127.0.0.1:30000",
            user: "op",
            host: "rig",
            started_unix_ms: 1_000,
            simulated: false,
        })
        .unwrap()
}

pub(crate) fn task(id: u64, kind: TaskKind, state: TaskState) -> Task {
    Task {
        id,
        title: format!("task {id}"),
        kind,
        state,
        note: id
            .is_multiple_of(2)
            .then(|| "73.5 … 503.9 tok/s".to_string()),
    }
}

pub(crate) fn point(concurrency: u32, validity: Validity) -> Point {
    let spread = Summary {
        n: 2,
        p50: Some(12.5),
        ..Summary::default()
    };
    Point {
        cell: Cell {
            kind: PlanKind::Throughput,
            input: 1000,
            output: 500,
            concurrency,
            requests: 2,
            arrivals: Default::default(),
        },
        context: Some(32_768),
        started_unix_ms: 5,
        ended_unix_ms: 9,
        total: 2,
        ok: 1,
        failed: 1,
        failures: vec![(
            Failure {
                kind: FailureKind::Status(503),
                message: "busy".into(),
            },
            1,
        )],
        input_tokens: 2000,
        output_tokens: 500,
        tokens_source: TokensSource::Usage,
        tokens_per_chunk: Some(1.5),
        ttft_ms: spread,
        client_queue_ms: Summary::default(),
        queue_ms: Summary::default(),
        prefill_ms: Summary::default(),
        first_answer_ms: Summary::default(),
        itl_ms: spread,
        itl_estimated: false,
        chunk_gap_ms: spread,
        stalls: 0,
        tpot_ms: spread,
        e2e_ms: spread,
        output_tok_s: Some(73.5),
        decode_tok_s: Some(74.25),
        prefill_tok_s: None,
        requests_s: Some(0.5),
        slo: Default::default(),
        goodput: None,
        slo_share: None,
        steady_s: None,
        spread_us: 30,
        repeat: false,
        cached_share: Some(0.0),
        validity,
        reasons: vec![Reason {
            weighs: validity,
            text: "1 of 2 failed".into(),
        }],
        client: ClientHealth::default(),
        server_side: ServerSide::default(),
        cards: Vec::new(),
        requests: vec![
            RequestRecord {
                start_ms: 0.25,
                ttft_ms: Some(12.5),
                output_tokens: Some(500),
                chunks: 333,
                ..RequestRecord::default()
            },
            RequestRecord {
                start_ms: 1.75,
                failure: Some(Failure {
                    kind: FailureKind::Status(503),
                    message: "busy".into(),
                }),
                ..RequestRecord::default()
            },
        ],
        partial: false,
        simulated: false,
    }
}

pub(crate) fn begin(store: &mut Store, session: Option<i64>) -> i64 {
    store
        .begin_run(&NewRun {
            session,
            plan: &Plan::throughput(true),
            url: "http://127.0.0.1:30000",
            engine: Kind::Sglang,
            engine_version: Some("0.5.11"),
            model: "qwen",
            context: Some(32_768),
            seed: u64::MAX - 1,
            simulated: false,
            started_unix_ms: 4,
            name: None,
            benchmark: None,
        })
        .unwrap()
}
