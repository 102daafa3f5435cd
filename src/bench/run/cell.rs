//! One cell: warm up, send its requests, watch them, and make a point of what they were.

use super::Run;
use super::beside::Beside;
use super::floor::{self, Floor};
use super::judge::Judge;
use super::live::thread_cpu_ns;
use super::measure::{self, Frame};
use super::settle;
use super::supply::Supply;
use super::tally::Tally;
use super::watching::Watch;
use crate::bench::Event;
use crate::bench::asker::{Asker, Recipe};
use crate::bench::client::{Alarm, Deadlines};
use crate::bench::plan::{Arrivals, Cell};
use crate::bench::point::Point;
use crate::bench::prompt::{Aim, Number};
use crate::bench::stats::Samples;
use crate::bench::worker::Stop;
use crate::clock::unix_ms;
use futures_util::future::join_all;
use std::cell::{Cell as StdCell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use tokio::task::JoinSet;

/// Groups of prompts that warm up are far from those that are measured.
const WARMING: u64 = 1 << 40;
/// A warm-up is worth its time up to this input length; beyond, it would double the work of the cell.
const WARM_INPUT: u64 = 4096;
const WARM_OUTPUT: u64 = 32;
/// Connections that an open loop finds open at its start; more are made as they are needed.
const OPEN_AT_START: u32 = 64;

/// Runs one cell. The point, if at least one request ended, and whether the operator stopped it.
pub async fn run(
    run: &mut Run,
    cell: Cell,
    index: usize,
    recipe: Recipe,
    stop: &mut Stop,
) -> (Option<Point>, bool) {
    let asker = run.asker.clone();
    let seed = asker.seed ^ index as u64;
    let warm = recipe.clone();
    let made = Supply::start(&asker, cell, index as u64, recipe)
        .and_then(|supply| Ok((supply, Judge::start()?, Alarm::new()?)));
    let (supply, judge, alarm) = match made {
        Ok(made) => made,
        Err(error) => {
            run.report_failure(&format!("the cell cannot be started: {error}"));
            return (None, false);
        }
    };
    let places = match cell.arrivals {
        Arrivals::Closed => cell.concurrency,
        Arrivals::Constant { .. } | Arrivals::Poisson { .. } => cell.concurrency.min(OPEN_AT_START),
    }
    .min(cell.requests);
    if !supply.ready(places, stop).await {
        return (None, true);
    }
    let limits = Deadlines::for_request(cell.input, cell.output, cell.concurrency);
    let prepared = async {
        asker.client.open(places as usize, &limits).await;
        if run.options.warm_up {
            warm_up(&asker, cell, index, &warm, &limits).await;
        }
    };
    tokio::select! {
        biased;
        () = stop.wait() => return (None, true),
        () = prepared => {}
    }
    let meter = &asker.client.meter;
    if run.settled_reads != Some(meter.reads.get()) {
        // The first one may have been asked for before the last of these requests had ended.
        settle::next(&mut run.load, stop).await;
        settle::next(&mut run.load, stop).await;
    }
    let mut beside = Beside::since(&run.load.borrow_and_update());
    run.gpus.borrow_and_update();
    meter.age.replace(Samples::coarse());
    let started_unix_ms = unix_ms();
    let began_ns = asker.client.now_ns();
    let cpu_before = thread_cpu_ns();
    let before = (meter.reads.get(), meter.events.get(), meter.stamped.get());
    let until_ns = run
        .options
        .duration
        .map(|time| began_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
    let floor = Rc::new(Floor {
        asker: asker.clone(),
        tally: RefCell::new(Tally::new(cell, began_ns, &run.options)),
        judge: RefCell::new(judge),
        supply,
        newest_failure: RefCell::new(None),
        template: run.template,
        alarm,
        until_ns,
        over: StdCell::new(false),
        given_up: StdCell::new(false),
    });
    let mut set = JoinSet::new();
    let stopped = {
        let work = floor::carry_out(&floor, &mut set, run.options.spread, seed);
        let mut watch = Watch::new(run, &floor, index, &mut beside);
        watch.until_done(pin!(work), stop).await
    };
    // Dropping the tasks closes their connections, which cancels the requests on the server.
    set.shutdown().await;
    let ended_ns = asker.client.now_ns();
    let seconds = ended_ns.saturating_sub(began_ns).max(1) as f64 / 1e9;
    let Some(floor) = Rc::into_inner(floor) else {
        return (None, stopped);
    };
    let mut tally = floor.tally.into_inner();
    let judged = floor.judge.into_inner().finish();
    tally.window.close(ended_ns, meter.chunks.get());
    let left = tally.take_streamed();
    if !left.is_empty() {
        run.reporter.tell(Event::Requests {
            index,
            records: left,
        });
    }
    if tally.done() == 0 || (stopped && tally.ok == 0) {
        return (None, stopped);
    }
    let reads = meter.reads.get() - before.0;
    let stamped = meter.stamped.get() - before.2;
    let cpu_share = (thread_cpu_ns() - cpu_before) as f64 / 1e9 / seconds;
    let ended_unix_ms = unix_ms();
    // The first reading may have been asked for before the last of these requests had ended; then it counts too few.
    let looks = if stopped { 0 } else { 2 };
    for _ in 0..looks {
        let Some(last) = settle::next(&mut run.load, stop).await else {
            break;
        };
        beside.load(&last, run.own_load.note(ended_ns, 0));
        run.settled_reads = Some(meter.reads.get());
        if !beside.counts_fewer_than(tally.done()) {
            break;
        }
    }
    let frame = Frame {
        context: run.context,
        started_unix_ms,
        ended_unix_ms,
        seconds,
        cpu_share: Some(cpu_share),
        template: run.template,
        events_per_read: (reads > 0).then(|| (meter.events.get() - before.1) as f64 / reads as f64),
        age: meter.age.borrow().summary(),
        // The first read after the stamps were switched on may lack one.
        kernel_stamps: stamped * 10 > reads * 9,
        given_up: floor.given_up.get(),
        partial: stopped,
        simulated: run.simulated,
        spread_us: match cell.arrivals {
            Arrivals::Closed => u64::try_from(run.options.spread.as_micros()).unwrap_or(u64::MAX),
            Arrivals::Constant { .. } | Arrivals::Poisson { .. } => 0,
        },
        judged,
    };
    (Some(measure::point(tally, &beside, frame)), stopped)
}

/// One short answer for every request that the cell keeps in flight. What fails here fails again where it counts.
async fn warm_up(asker: &Asker, cell: Cell, index: usize, recipe: &Recipe, limits: &Deadlines) {
    if cell.input > WARM_INPUT {
        return;
    }
    let output = cell.output.min(WARM_OUTPUT);
    let count = u64::from(cell.concurrency.min(cell.requests));
    let warming = (0..count).map(|request| async move {
        let number = Number {
            seed: asker.seed,
            group: WARMING + index as u64,
            request,
        };
        let prompt = recipe.prompt(number);
        asker.ask(&prompt, output, Aim::Speed, *limits).await
    });
    join_all(warming).await;
}
