use super::*;
use crate::app::task::{TaskKind, TaskState};
use crate::app::tried::TriedOutcome;
use crate::bench::checks::{Check, CheckKind, Verdict};
use crate::bench::plan::{Cell, Plan, PlanKind};
use crate::bench::point::{Point, Reason, TokensSource, Validity};
use crate::engine::{Context, Facts, Health, Kind};
use crate::gpu::{Card, CardState, Memory};
use crate::profile::Launch;
use crate::reading::Reading;
use crate::service::Config;
use crate::store::fixture::{place, point, task};
use crate::store::{Ending, EventKind, NewRun, NewSession, Store};

const START: i64 = 1_772_366_671_000;
const GIB: u64 = 1 << 30;

fn measured(kind: PlanKind, input: u64, concurrency: u32, decode: f64) -> Point {
    let mut point = point(concurrency, Validity::Valid);
    point.cell = Cell {
        kind,
        input,
        output: 200,
        concurrency,
        requests: 8,
        arrivals: Default::default(),
    };
    point.total = 8;
    point.ok = 8;
    point.failed = 0;
    point.failures.clear();
    point.reasons.clear();
    point.ttft_ms.p50 = Some(input as f64 / 7.0);
    point.itl_ms.p50 = Some(1000.0 / decode);
    point.decode_tok_s = Some(decode);
    point.output_tok_s = Some(decode * f64::from(concurrency) * 0.9);
    point.prefill_tok_s = Some(7000.0);
    point
}

fn doubted(mut point: Point, validity: Validity, why: &str) -> Point {
    point.validity = validity;
    point.reasons = vec![Reason {
        weighs: validity,
        text: why.into(),
    }];
    point
}

fn facts() -> Facts {
    Facts {
        kind: Kind::Sglang,
        version: Reading::Value("0.5.11".into()),
        model: Reading::Value("qwen3.6-27b|<b>x</b>".into()),
        model_file: None,
        health: Health::Up,
        context: Context {
            configured: Reading::Value(65_536),
            effective: Reading::Value(65_536),
            model_limit: Reading::Value(262_144),
            pool_tokens: Reading::Value(159_744),
            ..Context::default()
        },
        simulated: false,
        notes: vec!["an adapter is listed first".into()],
    }
}

fn cards() -> Vec<Card> {
    let card = |index: u32, state, memory| Card {
        index,
        uuid: format!("GPU-{index}"),
        name: "RTX A6000".into(),
        state,
        memory,
        busy_pct: Reading::default(),
        temp_c: Reading::default(),
        power_mw: Reading::default(),
        power_limit_mw: Reading::Value(300_000),
        processes: Reading::default(),
        detail: crate::gpu::Detail::default(),
    };
    let memory = Memory {
        total: 48 * GIB,
        used: 41 * GIB,
        free: 6 * GIB,
        reserved: GIB,
    };
    vec![
        card(0, CardState::Ok, Reading::Value(memory)),
        card(
            1,
            CardState::Lost {
                since_unix_ms: START + 60_000,
            },
            Reading::unsupported(),
        ),
    ]
}

fn tried() -> [Tried; 3] {
    let config = Config {
        context: 65_536,
        launch: Launch {
            argv: [
                "serve",
                "--model",
                "my model",
                "--context-length",
                "{context}",
            ]
            .map(String::from)
            .to_vec(),
            env: vec![("HF_TOKEN".into(), "secret".into())],
            cwd: None,
            slots: 1,
        },
    };
    let kept = Tried {
        start_ms: Some(83_000),
        capacity: Some(2.44),
        tightest: Some((0, 6 * GIB + GIB / 2)),
        checks: vec![
            Check {
                kind: CheckKind::HiddenFact,
                verdict: Verdict::Passed("found at the start".into()),
                took_ms: 900,
            },
            Check {
                kind: CheckKind::Creep,
                verdict: Verdict::NotRun("no cards to watch".into()),
                took_ms: 0,
            },
        ],
        config: Some(config),
        ..Tried::new(65_536)
    };
    let failed = Tried {
        outcome: TriedOutcome::Failed("CUDA out of memory | tried to allocate\n# 2 GiB".into()),
        ..Tried::new(262_144)
    };
    [Tried::new(32_768), kept, failed]
}

/// A session with a bit of everything, through the database and back.
fn whole(simulated: bool) -> ReportInput {
    let (_dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    let session = store
        .new_session(&NewSession {
            profile: "qwen/../prod*",
            url: "http://127.0.0.1:30000",
            user: "op",
            host: "rig_1",
            started_unix_ms: START,
            simulated,
        })
        .unwrap();
    store.save_facts(session, &facts()).unwrap();
    store.save_cards(session, &cards()).unwrap();
    let blocked = TaskState::Blocked {
        why: "needs 120,200 tokens".into(),
        raise_to: Some(131_072),
    };
    let done = TaskState::Done { took_ms: 401_000 };
    store
        .save_tasks(
            session,
            &[
                task(2, TaskKind::Throughput, done),
                task(3, TaskKind::Own, blocked),
            ],
        )
        .unwrap();
    for config in &tried() {
        store.record_config(session, config).unwrap();
    }
    let mut begin = |plan: &Plan, context, at| {
        store
            .begin_run(&NewRun {
                session: Some(session),
                plan,
                url: "http://127.0.0.1:30000",
                engine: Kind::Sglang,
                engine_version: Some("0.5.11"),
                model: "qwen3.6-27b",
                context: Some(context),
                seed: 7,
                simulated,
                started_unix_ms: at,
                name: None,
                benchmark: None,
            })
            .unwrap()
    };
    let long = begin(&Plan::long_context(false), 65_536, START + 200_000);
    let throughput = begin(&Plan::throughput(false), 32_768, START + 20_000);
    begin(&Plan::long_context(true), 65_536, START + 400_000);
    let mut chunks = measured(PlanKind::Throughput, 1000, 2, 68.8);
    chunks.tokens_source = TokensSource::Chunks;
    chunks.partial = true;
    for (run, point) in [
        (throughput, measured(PlanKind::Throughput, 1000, 1, 73.5)),
        (
            throughput,
            doubted(
                chunks,
                Validity::Suspect,
                "3 requests of others ran beside it",
            ),
        ),
        (
            throughput,
            doubted(
                measured(PlanKind::Throughput, 1000, 4, 51.7),
                Validity::Void,
                "41 % of the prompts came from the prefix cache",
            ),
        ),
        (long, measured(PlanKind::LongContext, 1000, 1, 73.6)),
        (long, measured(PlanKind::LongContext, 60_000, 1, 69.0)),
        (long, point(1, Validity::Void)),
    ] {
        store.add_point(run, &point).unwrap();
    }
    store
        .end_run(throughput, Ending::Finished, START + 60_000)
        .unwrap();
    store
        .end_run(long, Ending::Stopped, START + 260_000)
        .unwrap();
    for (at, kind, context) in [
        (100_000, EventKind::Stop, 32_768),
        (183_000, EventKind::Ready, 65_536),
    ] {
        store
            .add_event(
                session,
                &Event {
                    at_unix_ms: START + at,
                    kind,
                    text: "server <sglang>".into(),
                    context: Some(context),
                },
            )
            .unwrap();
    }
    store
        .add_decision(&Decision {
            session: Some(session),
            at_unix_ms: START + 500_000,
            user: "op".into(),
            host: "rig_1".into(),
            profile: "qwen".into(),
            value: 65_536,
            previous: Some(32_768),
            engine: Some(Kind::Sglang),
            engine_version: Some("0.5.11".into()),
            model: Some("qwen3.6-27b".into()),
            simulated,
            evidence: serde_json::Value::Null,
        })
        .unwrap();
    let input = gather(&store, session, Some(65_536), START + 600_000)
        .unwrap()
        .unwrap();
    ReportInput {
        session: SessionRow {
            tool_version: "0.0.0".into(),
            ..input.session.clone()
        },
        zone: jiff::tz::TimeZone::fixed(jiff::tz::Offset::constant(1)),
        ..input
    }
}

#[test]
fn the_whole_report() {
    insta::assert_snapshot!(markdown(&whole(false)));
}

#[test]
fn an_empty_session_says_that_nothing_is_there() {
    let (_dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    let session = crate::store::fixture::session(&mut store, "qwen");
    let input = gather(&store, session, None, START).unwrap().unwrap();
    let text = markdown(&ReportInput {
        session: SessionRow {
            tool_version: "0.0.0".into(),
            ..input.session.clone()
        },
        zone: jiff::tz::TimeZone::UTC,
        ..input
    });
    insta::assert_snapshot!(text);
    assert_eq!(gather(&store, session + 1, None, START).unwrap(), None);
}

#[test]
fn simulated_is_said_first_and_in_the_name() {
    let real = whole(false);
    let simulated = whole(true);
    assert!(markdown(&simulated).starts_with("> **SIMULATED.**"));
    assert!(!markdown(&real).contains("SIMULATED"));
    assert_eq!(
        path(Path::new("/r"), &simulated),
        Path::new("/r/vramp-qwen-..-prod--20260301-131431-SIMULATED.md")
    );
    assert_eq!(
        path(Path::new("/r"), &real),
        Path::new("/r/vramp-qwen-..-prod--20260301-131431.md")
    );
    // One simulated point is enough.
    let mut mixed = real;
    mixed.points[0].point.simulated = true;
    assert!(mixed.simulated());
}

#[test]
fn a_void_speed_is_not_offered() {
    let text = markdown(&whole(false));
    let row = text
        .lines()
        .find(|line| line.starts_with("|           4 |"))
        .expect("a row for concurrency 4");
    assert!(row.contains("void") && !row.contains("51.7"), "{row}");
    assert!(text.contains("concurrency 4, void: 41 % of the prompts"));
}

#[test]
fn the_page_says_the_same_and_nothing_from_outside_is_markup() {
    let mut input = whole(true);
    let page = html(&input);
    for words in [
        "SIMULATED",
        "<h2>Values tried</h2>",
        "<h2>throughput at a context of 32,768</h2>",
        "prefers-color-scheme: dark",
        "41 % of the prompts",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!html(&whole(false)).contains("SIMULATED"));
    input.session.profile = "<script>alert(1)</script>".into();
    input.runs[0].model = "</script><b>".into();
    input.points[0]
        .point
        .reasons
        .push(crate::bench::point::Reason {
            weighs: Validity::Suspect,
            text: "</script><img src=x>".into(),
        });
    let page = html(&input);
    assert!(
        !page.contains("<script>alert") && !page.contains("<img") && !page.contains("</script><b>")
    );
    assert!(page.contains("&lt;script&gt;alert(1)"));
}
