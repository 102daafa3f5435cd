//! The client under test, driven as the program drives it.

use crate::{Report, TOKENS, own_cost};
use std::sync::mpsc;
use std::time::Duration;
use tokio::sync::watch;
use vramp::bench::options::{Options, Records};
use vramp::bench::plan::{Arrivals, Cell, Plan, PlanKind};
use vramp::bench::{Event, Job, run};
use vramp::engine::{Endpoint, Kind, Load};
use vramp::gpu::Snapshot;

pub fn run(port: u16, concurrency: u64, requests: u64, spread_us: Option<u64>) -> Report {
    let cell = Cell {
        kind: PlanKind::Throughput,
        input: 32,
        output: TOKENS,
        concurrency: u32::try_from(concurrency).unwrap(),
        requests: u32::try_from(requests).unwrap(),
        arrivals: Arrivals::Closed,
    };
    let job = Job {
        endpoint: Endpoint {
            url: format!("http://127.0.0.1:{port}"),
            model: None,
            key: None,
            kind: Some(Kind::OpenAi),
        },
        kind: Kind::OpenAi,
        model: "m".into(),
        plan: Plan::throughput(true),
        cells: vec![cell],
        options: Options {
            records: Records::Stream,
            spread: spread_us.map_or(Options::default().spread, Duration::from_micros),
            ..Options::default()
        },
        context: None,
        seed: 1,
        simulated: true,
        load: watch::channel(Load::default()).1,
        gpus: watch::channel(Snapshot::default()).1,
    };
    let (sender, receiver) = mpsc::channel();
    let sink = Box::new(move |event| {
        if let Event::CellDone(point) = event {
            sender.send(point).unwrap();
        }
    });
    run::start(job, sink).unwrap().join();
    let point = receiver.recv().unwrap();
    assert_eq!(u64::from(point.ok), requests, "{:?}", point.reasons);
    let (cpu_s, peak_mib) = own_cost();
    Report {
        events: point.output_tokens,
        ttft_mean: point.ttft_ms.mean.unwrap(),
        ttft_p99: point.ttft_ms.p99.unwrap(),
        gap_p99: point.chunk_gap_ms.p99.unwrap(),
        cpu_s,
        peak_mib,
    }
}
