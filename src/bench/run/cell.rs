//! One cell: so many requests in flight, each place taken again as soon as it is free.

use super::Run;
use super::beside::Beside;
use super::live::{Rate, thread_cpu_ns};
use super::measure::{self, Frame};
use super::tally::Tally;
use crate::bench::asker::{Asker, Recipe};
use crate::bench::client::{Deadlines, Request};
use crate::bench::plan::Cell;
use crate::bench::point::{Failure, Point};
use crate::bench::prompt::{Aim, Ask, Number};
use crate::bench::worker::Stop;
use crate::bench::{Event, Live};
use crate::clock::unix_ms;
use crate::engine::Kind;
use std::cell::{Cell as StdCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

/// Time between two live events.
const TICK: Duration = Duration::from_millis(200);
/// Requests that are made ahead of their turn.
const AHEAD: usize = 8;

/// What the places of a cell share. All on one thread.
struct Shared {
    asker: Rc<Asker>,
    tally: RefCell<Tally>,
    /// The first request of each place, made before the clock starts.
    first: RefCell<VecDeque<Request>>,
    later: Mutex<mpsc::Receiver<Request>>,
    issued: StdCell<u32>,
    /// Nobody takes another request.
    over: StdCell<bool>,
    newest_failure: RefCell<Option<Failure>>,
    /// Tokens that every prompt has in common.
    template: u64,
}

/// Makes the requests of a cell on a thread of its own, in order, a few ahead.
fn make_requests(
    asker: &Asker,
    cell: Cell,
    group: u64,
    recipe: Recipe,
) -> std::io::Result<mpsc::Receiver<Request>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let limits = Deadlines::for_request(cell.input, cell.output, cell.concurrency);
    let target = asker.client.target().clone();
    let (model, kind, seed): (String, Kind, u64) = (asker.model.clone(), asker.kind, asker.seed);
    std::thread::Builder::new()
        .name("vramp-prompts".to_string())
        .spawn(move || {
            let ask = Ask {
                model: &model,
                output: cell.output,
                kind,
                aim: Aim::Speed,
            };
            for request in 0..u64::from(cell.requests) {
                let number = Number {
                    seed,
                    group,
                    request,
                };
                let (path, body) = ask.body(&recipe.prompt(number));
                let request = Request {
                    bytes: target.post(path, &body),
                    output: cell.output,
                    limits,
                };
                // Nobody takes them any more: the cell was stopped.
                if sender.blocking_send(request).is_err() {
                    return;
                }
            }
        })?;
    Ok(receiver)
}

/// Runs one cell. The point, if at least one request ended, and whether the operator stopped it.
pub async fn run(
    run: &mut Run,
    cell: Cell,
    index: usize,
    recipe: Recipe,
    stop: &mut Stop,
) -> (Option<Point>, bool) {
    let asker = run.asker.clone();
    let mut later = match make_requests(&asker, cell, index as u64, recipe) {
        Ok(receiver) => receiver,
        Err(error) => {
            run.report_failure(&format!(
                "cannot start the thread that makes prompts: {error}"
            ));
            return (None, false);
        }
    };
    let places = cell.concurrency.min(cell.requests);
    let mut first = VecDeque::new();
    while first.len() < places as usize {
        tokio::select! {
            biased;
            () = stop.wait() => return (None, true),
            request = later.recv() => match request {
                Some(request) => first.push_back(request),
                None => break,
            },
        }
    }
    let limits = Deadlines::for_request(cell.input, cell.output, cell.concurrency);
    tokio::select! {
        biased;
        () = stop.wait() => return (None, true),
        () = asker.client.open(places as usize, &limits) => {}
    }
    // Readings from before the cell say nothing about it.
    run.load.borrow_and_update();
    run.gpus.borrow_and_update();
    let started_unix_ms = unix_ms();
    let began_ns = asker.client.now_ns();
    let cpu_before = thread_cpu_ns();
    let (reads_before, events_before) = counts(&asker);
    let shared = Rc::new(Shared {
        asker: asker.clone(),
        tally: RefCell::new(Tally::new(cell, began_ns)),
        first: RefCell::new(first),
        later: Mutex::new(later),
        issued: StdCell::new(0),
        over: StdCell::new(false),
        newest_failure: RefCell::new(None),
        template: run.template,
    });
    let mut set = JoinSet::new();
    for _ in 0..places {
        set.spawn_local(place(shared.clone()));
    }
    let mut beside = Beside::default();
    let stopped = watch(run, &shared, &mut set, &mut beside, stop).await;
    // Dropping the tasks closes their connections, which cancels the requests on the server.
    set.shutdown().await;
    let ended_ns = asker.client.now_ns();
    let seconds = ended_ns.saturating_sub(began_ns).max(1) as f64 / 1e9;
    let (reads, events) = counts(&asker);
    let given_up = shared.over.get();
    let mut tally = shared.tally.replace(Tally::new(cell, ended_ns));
    tally
        .window
        .close(ended_ns, asker.client.meter.chunks.get());
    if tally.done() == 0 || (stopped && tally.ok == 0) {
        return (None, stopped);
    }
    let reads = reads - reads_before;
    let frame = Frame {
        context: run.context,
        started_unix_ms,
        ended_unix_ms: unix_ms(),
        seconds,
        cpu_share: Some((thread_cpu_ns() - cpu_before) as f64 / 1e9 / seconds),
        events_per_read: (reads > 0).then(|| (events - events_before) as f64 / reads as f64),
        given_up,
        partial: stopped,
        simulated: run.simulated,
    };
    (Some(measure::point(tally, &beside, &frame)), stopped)
}

fn counts(asker: &Asker) -> (u64, u64) {
    let meter = &asker.client.meter;
    (meter.reads.get(), meter.events.get())
}

/// One place: a request at a time, as long as there are any.
async fn place(shared: Rc<Shared>) {
    while let Some(request) = next(&shared).await {
        let meter = &shared.asker.client.meter;
        let started = StdCell::new(false);
        let on_start = |at_ns| {
            started.set(true);
            let mut tally = shared.tally.borrow_mut();
            tally.window.started(at_ns, meter.chunks.get());
        };
        let exchange = shared.asker.client.send(&request, &on_start).await;
        let mut tally = shared.tally.borrow_mut();
        tally.add(&exchange, shared.template);
        if tally.is_hopeless() && tally.done() < tally.cell.requests {
            shared.over.set(true);
        }
        let last = shared.over.get() || shared.issued.get() >= tally.cell.requests;
        if started.get() {
            tally
                .window
                .ended(exchange.end_ns, meter.chunks.get(), last);
        }
        if let Err(failure) = exchange.result {
            shared.newest_failure.replace(Some(failure));
        }
    }
}

async fn next(shared: &Shared) -> Option<Request> {
    if shared.over.get() {
        return None;
    }
    let first = shared.first.borrow_mut().pop_front();
    let request = match first {
        Some(request) => Some(request),
        None => shared.later.lock().await.recv().await,
    };
    if request.is_some() {
        shared.issued.set(shared.issued.get() + 1);
    }
    request
}

/// Reports until all places are done or the operator stops; says which.
async fn watch(
    run: &mut Run,
    shared: &Shared,
    set: &mut JoinSet<()>,
    beside: &mut Beside,
    stop: &mut Stop,
) -> bool {
    let client = &shared.asker.client;
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let chunks_before = client.meter.chunks.get();
    let mut rate = Rate::default();
    let mut cpu = (client.now_ns(), thread_cpu_ns());
    loop {
        tokio::select! {
            biased;
            () = stop.wait() => return true,
            ended = set.join_next() => if ended.is_none() {
                // The last readings of the cell, and its last failure.
                report(run, shared, beside, &mut rate, &mut cpu, chunks_before);
                return false;
            },
            _ = ticks.tick() => report(run, shared, beside, &mut rate, &mut cpu, chunks_before),
        }
    }
}

fn report(
    run: &mut Run,
    shared: &Shared,
    beside: &mut Beside,
    rate: &mut Rate,
    cpu: &mut (u64, u64),
    chunks_before: u64,
) {
    let client = &shared.asker.client;
    let now_ns = client.now_ns();
    let tally = shared.tally.borrow();
    let cell = tally.cell;
    let in_flight = tally.window.in_flight();
    let ours = run.own_load.note(now_ns, in_flight);
    beside.look(&mut run.load, &mut run.gpus, ours);
    if let Some(per_chunk) = tally.tokens_per_chunk() {
        run.tokens_per_chunk = per_chunk;
    }
    let chunks = client.meter.chunks.get();
    let wanted = u64::from(cell.requests) * cell.output;
    let so_far = (chunks - chunks_before) as f64 * run.tokens_per_chunk / wanted.max(1) as f64;
    // Failed requests bring no tokens and are done all the same.
    let share = so_far.max(f64::from(tally.done()) / f64::from(cell.requests.max(1)));
    let elapsed_ms = now_ns.saturating_sub(tally.began_ns) / 1_000_000;
    let cell_left_ms = run.forecast.left_ms(&cell, share, elapsed_ms);
    let cpu_now = (now_ns, thread_cpu_ns());
    let newest = tally.records.iter().rev().find(|r| r.failure.is_none());
    let live = Live {
        output_tok_s: rate.note(now_ns, chunks) * run.tokens_per_chunk,
        in_flight,
        done: tally.done(),
        failed: tally.failed,
        of: cell.requests,
        ttft_ms: newest.and_then(|r| r.ttft_ms),
        decode_tok_s: newest
            .and_then(|r| r.tpot_ms)
            .filter(|ms| *ms > 0.0)
            .map(|ms| 1000.0 / ms),
        cached_share: tally
            .cache_told
            .filter(|(prompt, _)| *prompt > 0)
            .map(|(prompt, cached)| cached as f64 / prompt as f64),
        client_cpu: (cpu_now.1 - cpu.1) as f64 / (cpu_now.0 - cpu.0).max(1) as f64,
        cell_left_ms,
        run_left_ms: cell_left_ms
            .zip(run.forecast.all_ms(&run.ahead))
            .map(|(a, b)| a + b),
    };
    *cpu = cpu_now;
    drop(tally);
    if let Some(failure) = shared.newest_failure.take() {
        run.reporter.tell(Event::Failed(failure));
    }
    run.reporter.tell_latest(Event::Live(live));
}
