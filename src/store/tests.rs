use super::fixture::{begin, place, point, session, task};
use super::*;
use crate::app::model::Tried;
use crate::app::task::{TaskKind, TaskState};
use crate::bench::point::{Point, Validity};
use crate::engine::Kind;

#[test]
fn a_session_comes_back_exactly() {
    let (_dir, path) = place();
    let tasks = vec![
        task(4, TaskKind::Raise { to: 65_536 }, TaskState::Pending),
        task(
            1,
            TaskKind::LongContext {
                inputs: vec![60_000],
            },
            TaskState::Blocked {
                why: "needs 60,200".into(),
                raise_to: Some(65_536),
            },
        ),
        task(
            2,
            TaskKind::Throughput,
            TaskState::Running {
                since_unix_ms: 7,
                share: Some(500),
                left_ms: None,
            },
        ),
        task(3, TaskKind::Own, TaskState::Skipped),
    ];
    let id = {
        let mut store = Store::open(&path).unwrap();
        session(&mut store, "other");
        let id = session(&mut store, "qwen");
        store.save_tasks(id, &tasks[..1]).unwrap();
        store.save_tasks(id, &tasks).unwrap();
        id
    };
    let mut store = Store::open(&path).unwrap();
    let row = store.latest_session("qwen").unwrap().unwrap();
    assert_eq!(row.id, id);
    assert_eq!(row.tasks, tasks);
    assert_eq!(row.next_task, 5);
    assert_eq!(row.url, "http://127.0.0.1:30000");
    assert_eq!(store.latest_session("nobody").unwrap(), None);

    // The highest task goes; its id is not given out again.
    store.save_tasks(id, &tasks[1..2]).unwrap();
    assert_eq!(store.session(id).unwrap().unwrap().next_task, 5);
}

#[test]
fn runs_and_points_come_back() {
    let (_dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    let id = session(&mut store, "qwen");
    let run = begin(&mut store, Some(id));
    let alone = begin(&mut store, None);
    let first = point(1, Validity::Valid);
    let at = store.add_point(run, &first).unwrap();
    store.add_point(run, &point(2, Validity::Void)).unwrap();
    store.add_point(alone, &point(4, Validity::Valid)).unwrap();
    store.end_run(run, Ending::Stopped, 99).unwrap();

    let points = store.session_points(id).unwrap();
    assert_eq!(points.len(), 2);
    let slim = Point {
        requests: Vec::new(),
        ..first.clone()
    };
    assert_eq!(points[0].point, slim);
    assert_eq!(store.requests(at).unwrap(), first.requests);
    assert_eq!(store.run_points(alone).unwrap().len(), 1);

    let rows = store.runs(10).unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].ending, None, "the one that never ended says so");
    assert_eq!(rows[0].profile, None);
    let row = &rows[1];
    assert_eq!((row.points, row.void), (2, 1));
    assert_eq!(row.ending, Some(Ending::Stopped));
    assert_eq!(row.seed, u64::MAX - 1);
    assert_eq!(row.profile.as_deref(), Some("qwen"));
    assert_eq!(store.runs(1).unwrap().len(), 1);
}

#[test]
fn evidence_is_one_row_a_context_without_secrets() {
    let (_dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    let id = session(&mut store, "qwen");
    let mut tried = Tried::new(65_536);
    store.record_config(id, &tried).unwrap();
    tried.tightest = Some((1, 6_871_947_673));
    tried.config = Some(crate::service::Config {
        context: 65_536,
        launch: crate::profile::Launch {
            argv: vec!["serve".into(), "--api-key".into(), "sk-1".into()],
            env: Vec::new(),
            cwd: None,
            slots: 1,
        },
    });
    store.record_config(id, &tried).unwrap();
    store.record_config(id, &Tried::new(32_768)).unwrap();
    let configs = store.configs(id).unwrap();
    let contexts: Vec<u64> = configs.iter().map(|tried| tried.context).collect();
    assert_eq!(contexts, [32_768, 65_536]);
    assert_eq!(configs[1].tightest, Some((1, 6_871_947_673)));
    drop(store);
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(4).any(|part| part == b"sk-1"));
}

#[test]
fn events_and_decisions_come_back() {
    let (_dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    let id = session(&mut store, "qwen");
    let event = |at_unix_ms, kind| Event {
        at_unix_ms,
        kind,
        text: "x".into(),
        context: Some(65_536),
    };
    store.add_event(id, &event(20, EventKind::Ready)).unwrap();
    store.add_event(id, &event(10, EventKind::Stop)).unwrap();
    assert_eq!(
        store.events(id).unwrap(),
        [event(10, EventKind::Stop), event(20, EventKind::Ready)]
    );
    let mut decision = Decision {
        session: Some(id),
        at_unix_ms: 30,
        user: "op".into(),
        host: "rig".into(),
        profile: "qwen".into(),
        value: 131_072,
        previous: Some(32_768),
        engine: Some(Kind::LlamaCpp),
        engine_version: Some("b1".into()),
        model: None,
        simulated: true,
        evidence: serde_json::json!([{"context": 131_072, "capacity": 1.2}]),
    };
    store.add_decision(&decision).unwrap();
    assert_eq!(store.session_decisions(id).unwrap(), [decision.clone()]);
    decision.session = None;
    decision.at_unix_ms = 29;
    store.add_decision(&decision).unwrap();
    assert_eq!(store.decisions(10).unwrap()[1], decision);
    assert_eq!(store.decisions(1).unwrap().len(), 1);
}

/// `seconds` of readings of two cards; the second one steps up by one byte a second.
fn readings(from_s: i64, seconds: i64) -> Vec<MemorySample> {
    (from_s..from_s + seconds)
        .flat_map(|s| {
            [0_u32, 1].map(|card| MemorySample {
                at_unix_ms: s * 1000,
                card,
                used: 40_000_000_000 + u64::from(card) * u64::try_from(s).unwrap(),
                total: 48_000_000_000,
            })
        })
        .collect()
}

#[test]
fn memory_history_is_thinned_and_keeps_its_extremes() {
    let (_dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    let id = session(&mut store, "qwen");
    let hours = 4;
    for turn in 0..hours * 6 {
        store.add_memory(id, &readings(turn * 600, 600)).unwrap();
    }
    let rows: i64 = store
        .conn
        .query_row("SELECT count(*) FROM memory_history", [], |row| row.get(0))
        .unwrap();
    // Two cards: at most 70 minutes in seconds, the rest in minutes.
    assert!(rows <= 2 * (70 * 60 + hours * 60), "{rows} rows");

    let end = hours * 3_600_000 - 1000;
    assert_eq!(store.memory_span(id).unwrap(), Some((0, end)));
    let bands = store.memory(id, 0, end, 100).unwrap();
    assert_eq!(bands.iter().filter(|band| band.card == 0).count(), 100);
    assert!(bands.len() <= 200);
    let steps: Vec<_> = bands.iter().filter(|band| band.card == 1).collect();
    assert_eq!(steps[0].min, 40_000_000_000);
    let last = steps[steps.len() - 1];
    assert_eq!(
        last.max,
        40_000_000_000 + u64::try_from(end / 1000).unwrap()
    );
    assert!(last.min < last.mean && last.mean < last.max);
    assert_eq!(last.total, 48_000_000_000);

    // A week later nothing but hours is left of it.
    store.add_memory(id, &readings(9 * 24 * 3600, 1)).unwrap();
    let rows: i64 = store
        .conn
        .query_row("SELECT count(*) FROM memory_history", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 2 * hours + 2);
}

#[test]
fn a_day_of_eight_cards_takes_less_than_ten_megabytes() {
    // Two of the eight: rows cost the same whatever card they are of.
    let cards = 2;
    let (_dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    let id = session(&mut store, "qwen");
    let mut hour = |from: i64| {
        for batch in 0..360 {
            let seconds = from * 3600 + batch * 10..from * 3600 + (batch + 1) * 10;
            let samples: Vec<MemorySample> = seconds
                .flat_map(|second| {
                    (0..cards).map(move |card| MemorySample {
                        at_unix_ms: second * 1000,
                        card,
                        used: 40_000_000_000 + second.unsigned_abs() * 1_048_576,
                        total: 48_000_000_000,
                    })
                })
                .collect();
            store.add_memory(id, &samples).unwrap();
        }
        let pages = |name: &str| -> i64 {
            let pragma = format!("PRAGMA {name}");
            store.conn.query_row(&pragma, [], |row| row.get(0)).unwrap()
        };
        (pages("page_count") - pages("freelist_count")) * pages("page_size")
    };
    let (first, second) = (hour(0), hour(1));
    let grown = hour(2) - second;
    assert!(
        (first + 23 * grown) * 8 / i64::from(cards) < 10_000_000,
        "the first hour takes {first} bytes, the third {grown} more"
    );
}

#[test]
fn a_gap_stays_a_gap() {
    let (_dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    let id = session(&mut store, "qwen");
    store.add_memory(id, &readings(0, 10)).unwrap();
    store.add_memory(id, &readings(90, 10)).unwrap();
    store.add_memory(id, &[]).unwrap();
    let bands = store.memory(id, 0, 99_000, 10).unwrap();
    let at: Vec<i64> = bands
        .iter()
        .filter(|band| band.card == 0)
        .map(|band| band.at_unix_ms)
        .collect();
    assert_eq!(at, [0, 90_000]);
}

#[test]
fn requests_are_kept_as_they_come_and_go_over_to_their_point() {
    let (_dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    let run = begin(&mut store, None);
    let mut point = point(4, Validity::Valid);
    let records = std::mem::take(&mut point.requests);
    store.add_early_requests(run, 0, &records).unwrap();
    store.add_early_requests(run, 0, &records[..1]).unwrap();
    store.add_early_requests(run, 1, &records).unwrap();
    let early = store.early_requests(run, 0).unwrap();
    assert_eq!(early, [&records[..], &records[..1]].concat());
    let id = store.finish_cell(run, 0, &point).unwrap();
    assert_eq!(store.requests(id).unwrap(), early);
    assert!(store.early_requests(run, 0).unwrap().is_empty());
    assert_eq!(
        store.early_requests(run, 1).unwrap(),
        records,
        "another cell keeps its own"
    );
    store.drop_early_requests(run, 1).unwrap();
    assert!(store.early_requests(run, 1).unwrap().is_empty());
    store.drop_point(id).unwrap();
    assert!(store.requests(id).unwrap().is_empty() && store.run_points(run).unwrap().is_empty());
}

#[test]
fn runs_are_found_by_name_and_unfinished_ones_are_gone_on_with() {
    let (_dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    let order = serde_json::json!({"cells": [1, 2]});
    let mut named = |benchmark: bool| {
        store
            .begin_run(&NewRun {
                session: None,
                plan: &crate::bench::plan::Plan::throughput(true),
                url: "http://h",
                engine: Kind::Vllm,
                engine_version: None,
                model: "m",
                context: None,
                seed: 1,
                simulated: true,
                started_unix_ms: 1,
                name: Some("night"),
                benchmark: benchmark.then_some(&order),
            })
            .unwrap()
    };
    let (_, second, third) = (named(true), named(true), named(false));
    assert_eq!(store.run_named("night").unwrap().unwrap().id, third);
    assert!(store.run_named("day").unwrap().is_none() && store.run(99).unwrap().is_none());
    let open = |store: &Store| -> Vec<i64> {
        store
            .unfinished_runs(9)
            .unwrap()
            .iter()
            .map(|row| row.id)
            .collect()
    };
    assert_eq!(
        open(&store),
        [2, 1],
        "those of the cockpit are not among them"
    );
    store.end_run(second, Ending::Finished, 5).unwrap();
    assert_eq!(open(&store), [1]);
    store.end_run(1, Ending::Stopped, 5).unwrap();
    assert_eq!(open(&store), [1]);
    store.go_on(1).unwrap();
    assert_eq!(store.run(1).unwrap().unwrap().ending, None);
    assert_eq!(store.benchmark(1).unwrap(), Some(order));
    assert_eq!(store.benchmark(third).unwrap(), None);
}
