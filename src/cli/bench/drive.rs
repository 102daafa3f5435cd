//! Measures: the engine on its own threads, the server's figures beside it, signals, progress and the record.

use super::order::Order;
use super::outputs::Outputs;
use super::progress::Progress;
use super::record::{Due, Record};
use crate::bench::point::Validity;
use crate::bench::{Event, Job, run};
use crate::cli::Failure;
use crate::clock::Clock;
use crate::engine::{Endpoint, Engine, Facts, Kind, Load};
use crate::gpu::{self, Snapshot, Source};
use crate::store::Ending;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// How often the server and the cards are asked.
const PERIOD: Duration = Duration::from_millis(500);
/// Signals that come closer together than this are one.
const SAME_PRESS: Duration = Duration::from_millis(700);
/// Events that may wait while the disk is busy.
const WAITING: usize = 64;

/// What is known of the server, as far as it says.
pub struct Server {
    pub endpoint: Endpoint,
    pub engine: Option<Arc<dyn Engine>>,
    pub facts: Option<Facts>,
    pub kind: Kind,
    pub model: String,
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Measured,
    /// Void points, or no good request.
    Failed,
    Interrupted,
}

/// Runs the cells that are due. Everything is on record when this returns.
pub async fn drive(
    order: &Order,
    server: &Server,
    due: &[Due],
    seed: u64,
    record: &mut Record,
    outputs: &Outputs,
    progress: &mut Progress,
) -> Result<Outcome, Failure> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::new)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::new)?;
    let (load_out, load) = watch::channel(Load::default());
    match server.engine.clone() {
        Some(engine) => drop(tokio::spawn(watch_load(engine, load_out))),
        // Nobody waits for readings that will not come.
        None => drop(load_out),
    }
    let (gpus, _reader) = cards(server);
    let simulated = server.facts.as_ref().is_some_and(|facts| facts.simulated);
    let mut options = order.options();
    // A part of the levels says nothing about drift over all of them.
    options.repeat_first &= due.len() == order.cells.len();
    let job = Job {
        endpoint: server.endpoint.clone(),
        kind: server.kind,
        model: server.model.clone(),
        plan: order.plan.clone(),
        cells: due.iter().map(|due| due.cell).collect(),
        options,
        context: context(server.facts.as_ref()),
        seed,
        simulated,
        load,
        gpus,
    };
    let (events, mut told) = mpsc::channel(WAITING);
    let sink = Box::new(move |event| {
        // Nobody listens only when this program ends.
        let _ = events.blocking_send(event);
    });
    let handle = run::start(job, sink).map_err(Failure::wrong_use)?;
    let mut interrupted = None;
    let mut finished = false;
    let mut now = 0;
    loop {
        let event = tokio::select! {
            event = told.recv() => event,
            _ = interrupt.recv() => {
                stop(&handle, &mut interrupted, progress);
                continue;
            }
            _ = terminate.recv() => {
                stop(&handle, &mut interrupted, progress);
                continue;
            }
        };
        match event {
            None => break,
            Some(Event::CellStarted { index, of, cell }) => {
                now = index;
                progress.cell(index, of, &cell);
            }
            Some(Event::Live(live)) => {
                if interrupted.is_none() {
                    progress.live(&live);
                }
            }
            Some(Event::Failed(failure)) => progress.failure(&failure),
            Some(Event::Requests { index, records }) => {
                record.keep_requests(number(due, index, order), &records)?;
            }
            Some(Event::CellDone(point)) => {
                let whole = due.get(now).map_or(point.cell, |due| due.whole);
                let point = record.keep_point(number(due, now, order), whole, *point)?;
                progress.point(&point);
                outputs.write(&record.report()?)?;
            }
            Some(Event::Finished { .. }) => {
                finished = true;
                break;
            }
        }
    }
    record.end(match (interrupted.is_some(), finished) {
        (true, _) => Ending::Stopped,
        (false, true) => Ending::Finished,
        (false, false) => Ending::Failed,
    })?;
    let report = record.report()?;
    outputs.write(&report)?;
    let bad = |validity| validity == Validity::Void;
    let missing = report.points.len() < order.cells.len().min(due.len());
    Ok(if interrupted.is_some() {
        Outcome::Interrupted
    } else if !finished || missing || report.points.iter().any(|point| bad(point.validity)) {
        Outcome::Failed
    } else {
        Outcome::Measured
    })
}

/// The number on record of the engine's cell `index`; those that it adds itself come behind the order's.
fn number(due: &[Due], index: usize, order: &Order) -> u32 {
    let added = || order.cells.len() + index.saturating_sub(due.len());
    due.get(index).map_or_else(
        || u32::try_from(added()).unwrap_or(u32::MAX),
        |due| due.number,
    )
}

fn stop(handle: &run::Handle, interrupted: &mut Option<Instant>, progress: &mut Progress) {
    if let Some(first) = interrupted {
        // Twice: now. What is on record stays there. One press may arrive twice, from the terminal and from a parent.
        if first.elapsed() > SAME_PRESS {
            std::process::exit(crate::cli::INTERRUPTED);
        }
        return;
    }
    *interrupted = Some(Instant::now());
    progress.line("stopping; what was measured is kept (again: end at once)");
    handle.stop();
}

async fn watch_load(engine: Arc<dyn Engine>, out: watch::Sender<Load>) {
    while !out.is_closed() {
        if let Ok(load) = engine.load().await {
            out.send_replace(load);
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// The cards of this machine, where the server runs on it. Those of a simulated one are not here.
fn cards(server: &Server) -> (watch::Receiver<Snapshot>, Option<gpu::watch::Control>) {
    let simulated = server.facts.as_ref().is_some_and(|facts| facts.simulated);
    if simulated || !is_here(&server.endpoint.url) {
        return (watch::channel(Snapshot::default()).1, None);
    }
    let source: Box<dyn Source> = Box::new(gpu::nvml::Nvml::new());
    let (cards, reader) = gpu::watch::watch(source, Clock::default(), PERIOD);
    (cards, Some(reader))
}

fn is_here(url: &str) -> bool {
    let Ok(url) = url::Url::parse(url) else {
        return false;
    };
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// What the server serves, tokens per request.
pub fn context(facts: Option<&Facts>) -> Option<u64> {
    facts.and_then(|facts| facts.context.effective.known().copied())
}
