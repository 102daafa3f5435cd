//! Watching a cell while it runs: live figures, readings beside it, and the reasons to end it early.

use super::Run;
use super::beside::Beside;
use super::floor::Floor;
use super::live::{Rate, thread_cpu_ns};
use super::tally::Tally;
use crate::bench::plan::{Arrivals, Cell};
use crate::bench::worker::Stop;
use crate::bench::{Event, Live};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// Time between two live events.
const TICK: Duration = Duration::from_millis(200);

pub struct Watch<'a> {
    run: &'a mut Run,
    floor: Rc<Floor>,
    index: usize,
    beside: &'a mut Beside,
    rate: Rate,
    chunks_before: u64,
    /// Time and CPU time at the last report.
    cpu: (u64, u64),
}

impl<'a> Watch<'a> {
    pub fn new(run: &'a mut Run, floor: &Rc<Floor>, index: usize, beside: &'a mut Beside) -> Self {
        let client = &floor.asker.client;
        Watch {
            run,
            index,
            beside,
            rate: Rate::default(),
            chunks_before: client.meter.chunks.get(),
            cpu: (client.now_ns(), thread_cpu_ns()),
            floor: floor.clone(),
        }
    }

    /// Reports until the work is done or the operator stops it; says which.
    pub async fn until_done(
        &mut self,
        mut work: Pin<&mut impl Future<Output = ()>>,
        stop: &mut Stop,
    ) -> bool {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.wait() => return true,
                () = &mut work => {
                    // The last readings of the cell, and its last failure.
                    self.report();
                    return false;
                }
                _ = ticks.tick() => self.report(),
            }
        }
    }

    fn report(&mut self) {
        let client = &self.floor.asker.client;
        let now_ns = client.now_ns();
        let mut tally = self.floor.tally.borrow_mut();
        let records = tally.take_streamed();
        let in_flight = tally.window.in_flight();
        let ours = self.run.own_load.note(now_ns, in_flight);
        self.beside
            .look(&mut self.run.load, &mut self.run.gpus, ours);
        if let Some(per_chunk) = tally.tokens_per_chunk() {
            self.run.tokens_per_chunk = per_chunk;
        }
        if self
            .run
            .options
            .precision
            .is_some_and(|width| is_precise(&tally, width))
        {
            self.floor.over.set(true);
        }
        let cell_left_ms = self.left_ms(&tally, now_ns);
        let ahead = (self.run.forecast).all_ms(&self.run.ahead, self.run.options.duration);
        let cpu_now = (now_ns, thread_cpu_ns());
        let chunks = client.meter.chunks.get();
        let live = Live {
            output_tok_s: self.rate.note(now_ns, chunks) * self.run.tokens_per_chunk,
            in_flight,
            done: tally.done(),
            failed: tally.failed,
            of: match tally.cell.requests {
                Cell::UNCOUNTED => 0,
                requests => requests,
            },
            ttft_ms: tally.newest.0,
            decode_tok_s: tally.newest.1.filter(|ms| *ms > 0.0).map(|ms| 1000.0 / ms),
            cached_share: tally.cached_share(),
            client_cpu: (cpu_now.1 - self.cpu.1) as f64 / (cpu_now.0 - self.cpu.0).max(1) as f64,
            cell_left_ms,
            run_left_ms: cell_left_ms.zip(ahead).map(|(a, b)| a.saturating_add(b)),
        };
        self.cpu = cpu_now;
        drop(tally);
        if !records.is_empty() {
            let index = self.index;
            self.run.reporter.tell(Event::Requests { index, records });
        }
        if let Some(failure) = self.floor.newest_failure.take() {
            self.run.reporter.tell(Event::Failed(failure));
        }
        self.run.reporter.tell_latest(Event::Live(live));
    }

    /// Milliseconds until the cell ends, by its requests or by its time, whichever is first.
    fn left_ms(&self, tally: &Tally, now_ns: u64) -> Option<u64> {
        let cell = tally.cell;
        let elapsed_ns = now_ns.saturating_sub(tally.began_ns);
        let by_time = self
            .floor
            .until_ns
            .map(|until| until.saturating_sub(now_ns) / 1_000_000);
        if cell.requests == Cell::UNCOUNTED {
            return by_time;
        }
        let chunks = self.floor.asker.client.meter.chunks.get() - self.chunks_before;
        let wanted = u64::from(cell.requests) * cell.output;
        let so_far = chunks as f64 * self.run.tokens_per_chunk / wanted.max(1) as f64;
        // Failed requests bring no tokens and are done all the same.
        let share = so_far.max(f64::from(tally.done()) / f64::from(cell.requests.max(1)));
        let forecast = &self.run.forecast;
        let by_count = forecast.left_ms(&cell, share, elapsed_ns / 1_000_000);
        match (by_count, by_time) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// Enough requests have ended, and both medians are known to within `width` of themselves.
fn is_precise(tally: &Tally, width: f64) -> bool {
    let least = match tally.cell.arrivals {
        Arrivals::Closed => tally.cell.concurrency.saturating_mul(3).max(8),
        Arrivals::Constant { .. } | Arrivals::Poisson { .. } => 30,
    };
    let narrow =
        |samples: &crate::bench::stats::Samples| samples.median_width().is_some_and(|w| w <= width);
    // Answers of one token have no TPOT.
    tally.ok >= least && narrow(&tally.ttft) && (tally.decode_tokens == 0 || narrow(&tally.tpot))
}
