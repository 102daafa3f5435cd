//! Ways of loading a server, of ending a cell, and of counting.

use super::client::{cell, events, job, measure, near, points, reasons, sound};
use super::server::{Counts, Manner, Server};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use vramp::bench::options::{Api, Options, Records, Search, Slo};
use vramp::bench::plan::{Arrivals, Cell, Rate};
use vramp::bench::point::{Point, RequestRecord, Validity};
use vramp::bench::{Event, saturation};
use vramp::engine::Kind;

fn run(manner: Manner, cell: Cell, options: Options) -> (Vec<Event>, Server) {
    let server = Server::start(manner);
    let mut job = job(&server.url(), Kind::Sglang, vec![cell]);
    job.options = options;
    (events(job), server)
}

fn at_rate(per_second: f64, concurrency: u32, requests: u32) -> Cell {
    Cell {
        arrivals: Arrivals::Constant {
            rate: Rate::from(per_second),
        },
        ..cell(200, 20, concurrency, requests)
    }
}

fn only(events: &[Event]) -> Point {
    let mut points = points(events);
    assert_eq!(points.len(), 1);
    points.remove(0)
}

#[test]
fn an_open_loop_keeps_its_rate_whatever_the_server_does() {
    let options = Options {
        slo: Slo {
            ttft_ms: Some(5000.0),
            tpot_ms: None,
        },
        ..Options::default()
    };
    let manner = Manner {
        ttft_ms: 150,
        ..Manner::default()
    };
    let (all, server) = run(manner, at_rate(50.0, 64, 60), options);
    let point = only(&all);
    assert_eq!((point.ok, point.failed), (60, 0), "{}", reasons(&point));
    let mut starts: Vec<f64> = point.requests.iter().map(|r| r.start_ms).collect();
    starts.sort_by(f64::total_cmp);
    // Sixty at 20 ms each, and none waits for another: some ten are open at once.
    assert!((starts[59] - 1180.0).abs() < 100.0, "{}", starts[59]);
    assert!(server.seen.most_open.load(Ordering::SeqCst) >= 8);
    assert!(near(point.ttft_ms.p50, 150.0, 30.0), "{:?}", point.ttft_ms);
    assert!(near(point.requests_s, 50.0, 8.0), "{:?}", point.requests_s);
    assert_eq!(
        (point.goodput, point.slo_share),
        (point.requests_s, Some(1.0))
    );
    let queue = point.client_queue_ms;
    assert!(
        queue.n == 60 && queue.p50.is_some_and(|ms| ms < 5.0),
        "{queue:?}"
    );
    assert!(sound(&point), "{}", reasons(&point));
}

#[test]
fn what_a_limit_holds_back_is_not_in_ttft_and_is_said() {
    let options = Options {
        slo: Slo {
            ttft_ms: Some(400.0),
            tpot_ms: None,
        },
        ..Options::default()
    };
    let manner = Manner {
        ttft_ms: 150,
        ..Manner::default()
    };
    // Two at once of 190 ms each are 10 a second at most.
    let (all, server) = run(manner, at_rate(50.0, 2, 20), options);
    let point = only(&all);
    assert_eq!(server.seen.most_open.load(Ordering::SeqCst), 2);
    assert!(near(point.ttft_ms.p50, 150.0, 30.0), "{:?}", point.ttft_ms);
    assert!(point.client_queue_ms.max.unwrap() > 900.0);
    // Targets count from when a request should have been sent.
    assert!(point.slo_share.unwrap() < 0.7, "{:?}", point.slo_share);
    assert_eq!(point.validity, Validity::Suspect);
    assert!(
        reasons(&point).contains("keeps more than 2 in flight"),
        "{}",
        reasons(&point)
    );
}

#[test]
fn random_arrivals_are_a_run_like_any_other() {
    let random = Cell {
        arrivals: Arrivals::Poisson {
            rate: Rate::from(100.0),
        },
        ..cell(200, 10, 100, 50)
    };
    let (all, _server) = run(Manner::default(), random, Options::default());
    let point = only(&all);
    assert_eq!((point.ok, point.goodput, point.slo_share), (50, None, None));
    let starts: Vec<f64> = point.requests.iter().map(|r| r.start_ms).collect();
    assert!(starts.iter().any(|ms| (ms / 10.0).fract() > 0.2));
}

#[test]
fn time_ends_a_cell_and_what_is_in_flight_goes_on_to_its_end() {
    let options = Options {
        duration: Some(Duration::from_millis(600)),
        ..Options::default()
    };
    let began = Instant::now();
    let (all, _server) = run(
        Manner::default(),
        cell(200, 50, 4, Cell::UNCOUNTED),
        options,
    );
    assert!(began.elapsed() < Duration::from_secs(10));
    let point = only(&all);
    // Each takes 20 + 98 ms.
    assert!((12..=24).contains(&point.ok), "{}", point.ok);
    assert_eq!((point.failed, point.partial), (0, false));
    assert!(point.requests.iter().all(|r| r.start_ms <= 620.0));
    let live_of: Vec<u32> = all
        .iter()
        .filter_map(|event| match event {
            Event::Live(live) => Some(live.of),
            _ => None,
        })
        .collect();
    assert!(live_of.iter().all(|of| *of == 0));
}

#[test]
fn a_cell_ends_when_its_medians_are_known() {
    let options = Options {
        precision: Some(0.5),
        ..Options::default()
    };
    let (all, _server) = run(Manner::default(), cell(200, 20, 2, 100_000), options);
    let point = only(&all);
    assert!((8..500).contains(&point.ok), "{}", point.ok);
    assert!(!point.partial);
    let (low, high) = (
        point.tpot_ms.p50_low.unwrap(),
        point.tpot_ms.p50_high.unwrap(),
    );
    assert!(high - low <= 0.6 * point.tpot_ms.p50.unwrap());
}

#[test]
fn records_are_told_as_they_come_and_kept_nowhere() {
    let options = Options {
        records: Records::Stream,
        ..Options::default()
    };
    let (all, _server) = run(Manner::default(), cell(200, 50, 2, 20), options);
    let point = only(&all);
    assert!(point.requests.is_empty());
    let batches: Vec<&Vec<RequestRecord>> = all
        .iter()
        .filter_map(|event| match event {
            Event::Requests { index: 0, records } => Some(records),
            _ => None,
        })
        .collect();
    assert!(batches.len() >= 3, "{}", batches.len());
    assert_eq!(batches.iter().map(|b| b.len()).sum::<usize>(), 20);
}

#[test]
fn the_highest_level_within_the_targets_is_found() {
    let options = Options {
        slo: Slo {
            ttft_ms: Some(200.0),
            tpot_ms: None,
        },
        search: Some(Search {
            limit: 64,
            share: 0.9,
        }),
        ..Options::default()
    };
    let manner = Manner {
        ttft_ms: 5,
        ttft_ms_each: 30,
        ..Manner::default()
    };
    let (all, _server) = run(manner, cell(50, 4, 1, 8), options);
    let points = points(&all);
    // Six open at once wait 185 ms, seven 215.
    let found = saturation::highest_within(&points, 0.9);
    let levels: Vec<u32> = points.iter().map(|p| p.cell.concurrency).collect();
    assert!(
        found.is_some_and(|level| (4..=6).contains(&level)),
        "{found:?} of {levels:?}"
    );
    assert_eq!(levels.get(..4), Some(&[1, 2, 4, 8][..]));
}

#[test]
fn a_full_plan_warms_up_and_measures_its_first_level_again() {
    let options = Options {
        warm_up: true,
        repeat_first: true,
        ..Options::default()
    };
    let server = Server::start(Manner::default());
    let cells = vec![cell(200, 20, 2, 8), cell(200, 20, 4, 12)];
    let mut job = job(&server.url(), Kind::Sglang, cells);
    job.options = options;
    let all = events(job);
    let points = points(&all);
    let levels: Vec<(u32, bool)> = points
        .iter()
        .map(|p| (p.cell.concurrency, p.repeat))
        .collect();
    assert_eq!(levels, [(2, false), (4, false), (2, true)]);
    assert!(matches!(
        all.first(),
        Some(Event::CellStarted { of: 3, .. })
    ));
    // One stream to learn, 2 + 4 + 2 to warm up, 28 that count, and no two alike.
    assert_eq!(server.seen.streams.load(Ordering::SeqCst), 1 + 8 + 28);
    assert_eq!(server.seen.blocks.lock().unwrap().len(), 37);
    assert_eq!(points.iter().map(|p| p.ok).sum::<u32>(), 28);
}

#[test]
fn the_part_of_the_api_can_be_chosen() {
    for (api, tokenizer, chats) in [
        (Api::Chat, true, true),
        (Api::Completions, true, false),
        (Api::Completions, false, false),
    ] {
        let server = Server::start(Manner {
            tokenizer,
            ..Manner::default()
        });
        let mut job = job(&server.url(), Kind::OpenAi, vec![cell(500, 4, 1, 2)]);
        job.options.api = api;
        let point = only(&events(job));
        assert_eq!(point.ok, 2, "{}", reasons(&point));
        assert_eq!(
            server.seen.chats.load(Ordering::SeqCst) > 0,
            chats,
            "{api:?}"
        );
        let mean = point.input_tokens as f64 / 2.0;
        assert!((mean - 500.0).abs() <= 2.5, "{mean} with {api:?}");
    }
}

#[test]
fn counts_with_every_event_make_exact_gaps() {
    let uneven = |counts| Manner {
        tokens_per_event: 3,
        step_ms: 30,
        counts,
        ..Manner::default()
    };
    let (point, _server) = measure(uneven(Counts::Continuous), Kind::Vllm);
    assert!(near(point.itl_ms.p50, 10.0, 0.6), "{:?}", point.itl_ms);
    assert_eq!((point.output_tokens, point.itl_estimated), (1600, false));
    // A server that is late sends two events at once, which are one read.
    let gaps = point.chunk_gap_ms.n;
    assert!((16 * 29..=16 * 33).contains(&gaps), "{gaps}");
    let (point, _server) = measure(uneven(Counts::WhenAsked), Kind::Vllm);
    assert!(point.itl_estimated);
    assert!(near(point.itl_ms.p50, 10.0, 0.6), "{:?}", point.itl_ms);
}
