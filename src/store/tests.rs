use super::*;
use crate::app::model::Tried;
use crate::app::task::{Task, TaskKind, TaskState};
use crate::bench::plan::{Cell, Plan, PlanKind};
use crate::bench::point::{
    ClientHealth, Failure, FailureKind, Point, Reason, RequestRecord, ServerSide, Summary,
    TokensSource, Validity,
};
use crate::engine::Kind;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data/vramp.db");
    (dir, path)
}

fn session(store: &mut Store, profile: &str) -> i64 {
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

fn task(id: u64, kind: TaskKind, state: TaskState) -> Task {
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

fn point(concurrency: u32, validity: Validity) -> Point {
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
        first_answer_ms: Summary::default(),
        itl_ms: spread,
        chunk_gap_ms: spread,
        stalls: 0,
        tpot_ms: spread,
        e2e_ms: spread,
        output_tok_s: Some(73.5),
        decode_tok_s: Some(74.25),
        prefill_tok_s: None,
        requests_s: Some(0.5),
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

fn begin(store: &mut Store, session: Option<i64>) -> i64 {
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
        })
        .unwrap()
}

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
fn a_newer_database_is_refused_and_left_as_it_is() {
    let (_dir, path) = place();
    {
        let mut store = Store::open(&path).unwrap();
        session(&mut store, "qwen");
        store
            .conn
            .pragma_update(None, "user_version", 1000)
            .unwrap();
    }
    let before = std::fs::read(&path).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { found: 1000, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("newer vramp"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_foreign_file_is_refused_and_left_as_it_is() {
    let (dir, path) = place();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = "these are my notes, not a database\n".repeat(40);
    std::fs::write(&path, &text).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);

    let other = dir.path().join("other.db");
    Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE sessions (mine)")
        .unwrap();
    let before = std::fs::read(&other).unwrap();
    let error = Store::open(&other).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    assert_eq!(std::fs::read(&other).unwrap(), before);
}

#[test]
fn a_place_that_cannot_be_written_says_so() {
    // /proc takes files from nobody, not even from root.
    for path in ["/proc/vramp.db", "/proc/self/data/vramp.db"] {
        let error = Store::open(Path::new(path)).unwrap_err();
        assert!(matches!(error, StoreError::Directory { .. }), "{error}");
        assert!(
            error.to_string().contains(path) && error.to_string().contains("writable"),
            "{error}"
        );
    }
    if rustix::process::geteuid().is_root() {
        return; // Modes bind everybody else.
    }
    let (_dir, path) = place();
    session(&mut Store::open(&path).unwrap(), "qwen");
    let folder = path.parent().unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o400)).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o500)).unwrap();
    let error = Store::open(&folder.join("new.db")).unwrap_err();
    assert!(matches!(error, StoreError::Directory { .. }), "{error}");
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).unwrap();
}

#[test]
fn many_open_the_same_new_database_at_once() {
    let (_dir, path) = place();
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut store = Store::open(&path).unwrap();
                for _ in 0..5 {
                    session(&mut store, &format!("p{n}"));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let store = Store::open(&path).unwrap();
    for n in 0..4 {
        assert!(store.latest_session(&format!("p{n}")).unwrap().is_some());
    }
}

#[test]
fn a_second_reader_sees_whole_steps_while_the_first_writes() {
    let (_dir, path) = place();
    let mut writer = Store::open(&path).unwrap();
    let id = session(&mut writer, "qwen");
    let reader = Store::open(&path).unwrap();
    let lists: Vec<Vec<Task>> = [3_u64, 7]
        .map(|n| {
            (0..n)
                .map(|id| task(id, TaskKind::Own, TaskState::Pending))
                .collect()
        })
        .to_vec();
    writer.save_tasks(id, &lists[0]).unwrap();
    let thread = std::thread::spawn(move || {
        for turn in 0..40 {
            writer.save_tasks(id, &lists[turn % 2]).unwrap();
        }
    });
    while !thread.is_finished() {
        let seen = reader.session(id).unwrap().unwrap().tasks.len();
        assert!(seen == 3 || seen == 7, "{seen} tasks");
    }
    thread.join().unwrap();
}

/// Writes for ever, saying after each step that it is on the disk. Runs only as a child of the test below.
#[test]
fn writer_that_is_killed() {
    let Ok(path) = std::env::var("VRAMP_TEST_KILLED_WRITER") else {
        return;
    };
    let mut store = Store::open(Path::new(&path)).unwrap();
    let id = session(&mut store, "qwen");
    let run = begin(&mut store, Some(id));
    for n in 1.. {
        store.add_point(run, &point(n, Validity::Valid)).unwrap();
        std::fs::write(format!("{path}.new"), n.to_string()).unwrap();
        std::fs::rename(format!("{path}.new"), format!("{path}.count")).unwrap();
    }
}

#[test]
fn what_was_handed_over_survives_a_kill_in_the_middle() {
    let (_dir, path) = place();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests::writer_that_is_killed"])
        .env("VRAMP_TEST_KILLED_WRITER", &path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let count = || {
        std::fs::read_to_string(path.with_extension("db.count"))
            .ok()
            .and_then(|text| text.parse::<usize>().ok())
            .unwrap_or(0)
    };
    while count() < 20 {
        assert!(child.try_wait().unwrap().is_none(), "the writer ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let said = count();
    let store = Store::open(&path).unwrap();
    let row = store.latest_session("qwen").unwrap().unwrap();
    let points = store.session_points(row.id).unwrap();
    assert!(
        points.len() == said || points.len() == said + 1,
        "{} points, {said} handed over",
        points.len()
    );
    for stored in points {
        assert_eq!(store.requests(stored.id).unwrap().len(), 2);
    }
    let sound: String = store
        .conn
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(sound, "ok");
}
