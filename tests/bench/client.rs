//! The engine as the cockpit runs it: exact figures, endings, failures. The ways in which clients are known to bend their figures are in
//! `table`.

use super::server::{Manner, Server};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use vramp::bench::options::Options;
use vramp::bench::plan::{Cell, Plan, PlanKind};
use vramp::bench::point::{FailureKind, Point, TokensSource, Validity};
use vramp::bench::{Event, Job, run};
use vramp::engine::{Endpoint, Kind, Load};
use vramp::gpu::Snapshot;

pub fn cell(input: u64, output: u64, concurrency: u32, requests: u32) -> Cell {
    Cell {
        kind: PlanKind::Throughput,
        input,
        output,
        concurrency,
        requests,
        arrivals: Default::default(),
    }
}

pub fn job(url: &str, kind: Kind, cells: Vec<Cell>) -> Job {
    Job {
        endpoint: Endpoint {
            url: url.to_string(),
            model: None,
            key: None,
            kind: Some(kind),
        },
        kind,
        model: "m".into(),
        plan: Plan::throughput(true),
        cells,
        options: Options::default(),
        context: Some(1 << 20),
        seed: 42,
        simulated: false,
        load: watch::channel(Load::default()).1,
        gpus: watch::channel(Snapshot::default()).1,
    }
}

/// Runs to the end and gives all events.
pub fn events(job: Job) -> Vec<Event> {
    let (sender, receiver) = mpsc::channel();
    let handle = run::start(job, Box::new(move |event| sender.send(event).unwrap())).unwrap();
    handle.join();
    receiver.iter().collect()
}

pub fn points(events: &[Event]) -> Vec<Point> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::CellDone(point) => Some((**point).clone()),
            _ => None,
        })
        .collect()
}

/// Eight at once, sixteen requests of a hundred tokens.
pub fn measure(manner: Manner, kind: Kind) -> (Point, Server) {
    let server = Server::start(manner);
    let events = events(job(&server.url(), kind, vec![cell(200, 100, 8, 16)]));
    assert_eq!(events.last(), Some(&Event::Finished { stopped: false }));
    let mut points = points(&events);
    assert_eq!(points.len(), 1);
    (points.remove(0), server)
}

pub fn near(value: Option<f64>, want: f64, slack: f64) -> bool {
    value.is_some_and(|v| (v - want).abs() <= slack)
}

pub fn reasons(point: &Point) -> String {
    let texts: Vec<&str> = point.reasons.iter().map(|r| r.text.as_str()).collect();
    texts.join("; ")
}

/// Nothing is held against the point but what the machine under the tests is to blame for: it is busy, and data waited.
pub fn sound(point: &Point) -> bool {
    point
        .reasons
        .iter()
        .all(|reason| reason.weighs == Validity::Valid || reason.text.starts_with("data waited"))
}

#[test]
fn a_plain_run_is_exact_and_valid() {
    let manner = Manner {
        step_ms: 10,
        ttft_ms: 50,
        ..Manner::default()
    };
    let (point, server) = measure(manner, Kind::Sglang);
    assert_eq!((point.total, point.ok, point.failed), (16, 16, 0));
    assert_eq!((point.input_tokens, point.output_tokens), (3200, 1600));
    assert_eq!(point.tokens_source, TokensSource::Usage);
    assert!(near(point.ttft_ms.p50, 50.0, 15.0), "{:?}", point.ttft_ms);
    assert!(near(point.itl_ms.mean, 10.0, 0.5), "{:?}", point.itl_ms);
    assert!(near(point.tpot_ms.p50, 10.0, 0.5), "{:?}", point.tpot_ms);
    assert!(near(point.decode_tok_s, 100.0, 5.0));
    // Eight streams of 100 tokens in 50 + 990 ms each.
    assert!(
        near(point.output_tok_s, 800.0 / 1.05, 40.0),
        "{:?}",
        point.output_tok_s
    );
    assert!(sound(&point), "{}", reasons(&point));
    assert_eq!(point.ttft_ms.p99, None);
    assert!(point.client.kernel_stamps && !point.itl_estimated);
    assert!(point.ttft_ms.p50_low <= point.ttft_ms.p50 && point.ttft_ms.p50_low.is_some());
    assert_eq!(point.cached_share, Some(0.0));
    // Eight connections, all kept, and every prompt is exact and begins its own way.
    assert_eq!(server.seen.most_open.load(Ordering::SeqCst), 8);
    assert!(server.seen.connections.load(Ordering::SeqCst) <= 9);
    let prompts = server.seen.prompts.lock().unwrap();
    assert_eq!(prompts.iter().filter(|n| **n == 200).count(), 16);
    assert_eq!(server.seen.blocks.lock().unwrap().len(), prompts.len());
}

#[test]
fn cached_prompts_and_loops_are_not_results() {
    let (point, _server) = measure(
        Manner {
            cached: 0.5,
            ..Manner::default()
        },
        Kind::Vllm,
    );
    assert_eq!(
        (point.validity, point.speed_counts()),
        (Validity::Void, false)
    );
    assert!(reasons(&point).contains("50 % of the prompt tokens"));
    let (point, _server) = measure(
        Manner {
            only_word: Some("lambda"),
            ..Manner::default()
        },
        Kind::Vllm,
    );
    assert_eq!(
        (point.validity, point.speed_counts()),
        (Validity::Suspect, false)
    );
    assert!(reasons(&point).contains("\"lambda\""));
}

#[test]
fn messages_have_the_length_that_the_server_counts() {
    let server = Server::start(Manner {
        tokenizer: false,
        ..Manner::default()
    });
    let lengths = [256, 1000, 10_001];
    let cells = lengths.iter().map(|n| cell(*n, 4, 1, 2)).collect();
    let all = events(job(&server.url(), Kind::OpenAi, cells));
    for (point, asked) in points(&all).iter().zip(lengths) {
        let mean = point.input_tokens as f64 / f64::from(point.ok);
        assert!((mean - asked as f64).abs() <= 1.0, "{mean} for {asked}");
        assert!(
            !reasons(point).contains("prompts had"),
            "{}",
            reasons(point)
        );
    }
}

#[test]
fn ids_are_taken_although_the_first_answer_has_no_text() {
    let server = Server::start(Manner {
        mute_at_first: true,
        ..Manner::default()
    });
    let all = events(job(&server.url(), Kind::Vllm, vec![cell(64, 20, 1, 3)]));
    assert_eq!(points(&all)[0].input_tokens, 3 * 64);
    assert_eq!(server.seen.chats.load(Ordering::SeqCst), 0);
}

#[test]
fn a_server_that_closes_after_each_answer_costs_no_request() {
    let (point, server) = measure(
        Manner {
            closes: true,
            ..Manner::default()
        },
        Kind::LlamaCpp,
    );
    assert_eq!((point.ok, point.failed), (16, 0), "{}", reasons(&point));
    assert!(server.seen.connections.load(Ordering::SeqCst) >= 16);
}

#[test]
fn a_dead_server_is_said_and_does_not_hold_the_run() {
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let began = Instant::now();
    let cells = vec![cell(200, 100, 2, 300), cell(200, 100, 4, 300)];
    let all = events(job(&format!("http://{address}"), Kind::Vllm, cells));
    assert!(began.elapsed() < Duration::from_secs(10));
    for point in points(&all) {
        assert_eq!((point.validity, point.ok), (Validity::Void, 0));
        assert!(point.total < 300);
        assert_eq!(point.failures[0].0.kind, FailureKind::Refused);
        assert!(
            reasons(&point).contains("given up after"),
            "{}",
            reasons(&point)
        );
    }
    // A server without a single answer is not loaded further.
    assert_eq!(points(&all).len(), 1);
}

#[test]
fn a_server_that_dies_in_the_middle_ends_the_cell_and_keeps_what_was() {
    let server = Server::start(Manner {
        dies_after: Some(11),
        ..Manner::default()
    });
    let all = events(job(&server.url(), Kind::Vllm, vec![cell(200, 20, 2, 1000)]));
    let point = points(&all).remove(0);
    // One stream went into learning; an answer of the other place may begin the count anew.
    assert_eq!(point.ok, 10, "{}", reasons(&point));
    assert!((3..=6).contains(&point.failed), "{}", point.failed);
    assert_eq!(point.validity, Validity::Suspect);
    assert!(
        reasons(&point).contains("requests failed, given up after"),
        "{}",
        reasons(&point)
    );
    assert!(!point.partial && point.decode_tok_s.is_some());
}

#[test]
fn stopping_keeps_what_was_measured_and_cancels_the_rest() {
    let server = Server::start(Manner {
        step_ms: 5,
        ..Manner::default()
    });
    let (sender, receiver) = mpsc::channel();
    let job = job(
        &server.url(),
        Kind::Sglang,
        vec![cell(200, 100, 2, 1000), cell(200, 100, 4, 8)],
    );
    let handle = run::start(job, Box::new(move |event| sender.send(event).unwrap())).unwrap();
    let mut all = Vec::new();
    let mut stopped_at = None;
    while let Ok(event) = receiver.recv_timeout(Duration::from_secs(30)) {
        if let Event::Live(live) = &event
            && live.done >= 3
            && stopped_at.is_none()
        {
            assert_eq!((live.of, live.in_flight), (1000, 2));
            assert!(live.output_tok_s > 100.0, "{live:?}");
            assert!(live.cell_left_ms.is_some() && live.ttft_ms.is_some());
            handle.stop();
            stopped_at = Some(Instant::now());
        }
        all.push(event);
    }
    assert!(stopped_at.unwrap().elapsed() < Duration::from_secs(3));
    handle.join();
    assert_eq!(all.last(), Some(&Event::Finished { stopped: true }));
    let points = points(&all);
    assert_eq!(points.len(), 1);
    assert!(points[0].partial && points[0].ok >= 3 && points[0].failed == 0);
    assert!(
        near(points[0].output_tok_s, 390.0, 40.0),
        "{:?}",
        points[0].output_tok_s
    );
    // The server notices that nobody listens any more.
    let deadline = Instant::now() + Duration::from_secs(3);
    while server.seen.open.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.seen.left.load(Ordering::SeqCst), 2);
}

#[test]
fn a_listener_that_blocks_is_in_no_figure() {
    let server = Server::start(Manner {
        step_ms: 10,
        ..Manner::default()
    });
    // As the cockpit listens: a bounded channel of its runtime, written to by blocking.
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let sink = Box::new(move |event| {
        std::thread::sleep(Duration::from_millis(150));
        let _ = sender.blocking_send(event);
    });
    let handle = run::start(
        job(&server.url(), Kind::Sglang, vec![cell(200, 50, 2, 8)]),
        sink,
    )
    .unwrap();
    let mut all = Vec::new();
    while let Some(event) = receiver.blocking_recv() {
        all.push(event);
    }
    handle.join();
    let point = points(&all).remove(0);
    assert_eq!(point.ok, 8);
    assert!(near(point.itl_ms.p50, 10.0, 1.0), "{:?}", point.itl_ms);
    assert!(
        point.chunk_gap_ms.max.unwrap() < 100.0,
        "{:?}",
        point.chunk_gap_ms
    );
}

#[test]
fn an_address_that_is_none_is_refused_at_once() {
    let error = run::start(job("not a url", Kind::Vllm, vec![]), Box::new(|_| {})).unwrap_err();
    assert!(error.to_string().contains("is not a URL"), "{error}");
}
