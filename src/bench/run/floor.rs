//! Where the requests of a cell are carried out, all on one thread: so many places that are taken again as soon as they are free (a
//! closed loop), or one after another at the moments of a schedule (an open loop).

use super::judge::Judge;
use super::supply::Supply;
use super::tally::Tally;
use crate::bench::asker::Asker;
use crate::bench::client::{Alarm, Request};
use crate::bench::plan::{Arrivals, Cell};
use crate::bench::point::Failure;
use std::cell::{Cell as StdCell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use tokio::task::JoinSet;

/// What the requests of a cell share.
pub struct Floor {
    pub asker: Rc<Asker>,
    pub tally: RefCell<Tally>,
    pub judge: RefCell<Judge>,
    pub supply: Supply,
    pub newest_failure: RefCell<Option<Failure>>,
    /// Tokens that every prompt has in common.
    pub template: u64,
    pub alarm: Alarm,
    /// No request is sent later than this.
    pub until_ns: Option<u64>,
    /// Nobody takes another request.
    pub over: StdCell<bool>,
    /// That is so because one after another failed.
    pub given_up: StdCell<bool>,
}

impl Floor {
    fn now_ns(&self) -> u64 {
        self.asker.client.now_ns()
    }

    fn is_over(&self) -> bool {
        self.over.get()
            || self.supply.is_empty()
            || self.until_ns.is_some_and(|until| self.now_ns() >= until)
    }

    async fn next(&self) -> Option<Request> {
        if self.is_over() {
            return None;
        }
        self.supply.next().await
    }

    /// Waits until `at_ns`.
    async fn wait(&self, at_ns: u64) {
        let left = at_ns.saturating_sub(self.now_ns());
        if self.alarm.after(Duration::from_nanos(left)).await.is_err() {
            // The kernel's timer failed; the runtime's is coarse and does as well.
            tokio::time::sleep(Duration::from_nanos(left)).await;
        }
    }

    /// Sends one request that should go at `due_ns`, and counts what comes of it.
    async fn carry_out(&self, request: &Request, due_ns: u64) {
        let meter = &self.asker.client.meter;
        let started = StdCell::new(false);
        let on_start = |at_ns| {
            started.set(true);
            let mut tally = self.tally.borrow_mut();
            tally.window.started(at_ns, meter.chunks.get());
        };
        let mut exchange = self.asker.client.send(request, &on_start).await;
        if exchange.result.is_ok() && exchange.answer.counted_tokens().is_none() {
            exchange.answer.tokenized = self.asker.tokens_of(&exchange.answer).await;
        }
        let mut tally = self.tally.borrow_mut();
        tally.add(&exchange, due_ns, self.template);
        if tally.is_hopeless() && tally.done() < tally.cell.requests {
            self.over.set(true);
            self.given_up.set(true);
        }
        if started.get() {
            let last = self.is_over();
            tally
                .window
                .ended(exchange.end_ns, meter.chunks.get(), last);
        }
        match exchange.result {
            Ok(()) => self.judge.borrow_mut().look(&mut exchange.answer),
            Err(failure) => drop(self.newest_failure.replace(Some(failure))),
        }
    }

    /// One place of a closed loop: a request at a time, as long as there are any.
    async fn place(self: Rc<Self>, mut due_ns: u64) {
        while let Some(request) = self.next().await {
            self.carry_out(&request, due_ns).await;
            due_ns = self.now_ns();
        }
    }
}

/// Carries out the whole cell in `set`. `spread`: between the first requests of a closed loop.
pub async fn carry_out(floor: &Rc<Floor>, set: &mut JoinSet<()>, spread: Duration, seed: u64) {
    let (cell, began_ns) = {
        let tally = floor.tally.borrow();
        (tally.cell, tally.began_ns)
    };
    match cell.arrivals.rate() {
        None => {
            for n in 0..cell.concurrency.min(cell.requests) {
                let due_ns = began_ns + ns(spread * n);
                floor.wait(due_ns).await;
                set.spawn_local(floor.clone().place(due_ns));
            }
        }
        Some(_) => {
            for after in schedule(&cell, seed) {
                let due_ns = began_ns.saturating_add(ns(after));
                floor
                    .wait(due_ns.min(floor.until_ns.unwrap_or(u64::MAX)))
                    .await;
                while set.len() >= cell.concurrency as usize {
                    set.join_next().await;
                }
                while set.try_join_next().is_some() {}
                let Some(request) = floor.next().await else {
                    break;
                };
                let floor = floor.clone();
                set.spawn_local(async move { floor.carry_out(&request, due_ns).await });
            }
            let chunks = floor.asker.client.meter.chunks.get();
            let at_ns = floor.now_ns();
            floor.tally.borrow_mut().window.close(at_ns, chunks);
        }
    }
    while set.join_next().await.is_some() {}
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// When the requests of an open loop should be sent, counted from the start of the cell.
fn schedule(cell: &Cell, seed: u64) -> impl Iterator<Item = Duration> + use<> {
    let arrivals = cell.arrivals;
    let mean_s = arrivals.rate().map_or(0.0, |rate| 1.0 / rate.per_second());
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut sum_s = 0.0;
    (0..cell.requests).map_while(move |n| {
        let at_s = match arrivals {
            Arrivals::Poisson { .. } => sum_s,
            Arrivals::Constant { .. } | Arrivals::Closed => f64::from(n) * mean_s,
        };
        // Exponential gaps make a Poisson process.
        sum_s -= mean_s * (1.0 - rng.f64()).ln();
        // A rate of nothing has no second request.
        Duration::try_from_secs_f64(at_s).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::plan::{PlanKind, Rate};

    fn cell(arrivals: Arrivals) -> Cell {
        Cell {
            kind: PlanKind::Throughput,
            input: 1,
            output: 1,
            concurrency: 1,
            requests: 2000,
            arrivals,
        }
    }

    #[test]
    fn schedules_have_their_rate() {
        let rate = Rate::from(8.0);
        let even: Vec<Duration> = schedule(&cell(Arrivals::Constant { rate }), 1).collect();
        assert_eq!(even.get(80), Some(&Duration::from_secs(10)));
        let random: Vec<Duration> = schedule(&cell(Arrivals::Poisson { rate }), 1).collect();
        assert_eq!(random.len(), 2000);
        let seconds = random.last().unwrap().as_secs_f64();
        assert!((230.0..270.0).contains(&seconds), "{seconds}");
        let gaps: Vec<f64> = random
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).as_secs_f64())
            .collect();
        // The gaps of a Poisson process are as wide as they are long.
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.1);
        let again: Vec<Duration> = schedule(&cell(Arrivals::Poisson { rate }), 1).collect();
        assert_eq!(random, again);
    }

    #[test]
    fn no_rate_sends_nothing_after_the_first() {
        let rate = Rate::from(0.0);
        assert!(schedule(&cell(Arrivals::Constant { rate }), 1).count() <= 1);
        assert!(schedule(&cell(Arrivals::Poisson { rate }), 1).count() <= 1);
    }
}
