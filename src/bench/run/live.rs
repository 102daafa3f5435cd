//! The run while it goes on: rates of the last second and time left.

use crate::bench::plan::Cell;
use crate::bench::point::Point;
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::time::Duration;

/// Nanoseconds over which the live rate is taken.
const RATE_NS: u64 = 1_000_000_000;

/// CPU time that this thread has used, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// A count's increase a second, over the last second.
#[derive(Debug, Default)]
pub struct Rate {
    seen: VecDeque<(u64, u64)>,
}

impl Rate {
    pub fn note(&mut self, at_ns: u64, count: u64) -> f64 {
        self.seen.push_back((at_ns, count));
        while self
            .seen
            .get(1)
            .is_some_and(|(then, _)| at_ns.saturating_sub(*then) >= RATE_NS)
        {
            self.seen.pop_front();
        }
        match self.seen.front() {
            Some((then, before)) if at_ns > *then => {
                count.saturating_sub(*before) as f64 / ((at_ns - then) as f64 / 1e9)
            }
            _ => 0.0,
        }
    }
}

/// Guesses how long cells take from the last one measured.
#[derive(Debug, Default)]
pub struct Forecast {
    known: Option<Pace>,
}

#[derive(Debug, Clone, Copy)]
struct Pace {
    ttft_ms_per_token: f64,
    tpot_ms: f64,
    concurrency: f64,
}

impl Forecast {
    pub fn learn(&mut self, point: &Point) {
        if let (Some(ttft), Some(tpot)) = (point.ttft_ms.p50, point.tpot_ms.p50) {
            self.known = Some(Pace {
                ttft_ms_per_token: ttft / point.cell.input.max(1) as f64,
                tpot_ms: tpot,
                concurrency: f64::from(point.cell.concurrency.max(1)),
            });
        }
    }

    /// Milliseconds that a cell will take: rounds of requests, each a prefill and its tokens. More requests at once slow each other
    /// down by about the square root of how many more there are.
    pub fn cell_ms(&self, cell: &Cell) -> Option<u64> {
        let pace = self.known?;
        let slower = (f64::from(cell.concurrency.max(1)) / pace.concurrency).sqrt();
        let rounds = cell.requests.div_ceil(cell.concurrency.max(1));
        let one = pace.ttft_ms_per_token * cell.input as f64 + pace.tpot_ms * cell.output as f64;
        let by_count = f64::from(rounds) * one * slower;
        // An open loop takes at least as long as its schedule.
        let by_rate = cell.arrivals.rate().map_or(0.0, |rate| {
            f64::from(cell.requests) * 1e3 / rate.per_second() + one
        });
        Some(by_count.max(by_rate) as u64)
    }

    /// Milliseconds for all of `cells`, none of which sends requests for longer than `most`.
    pub fn all_ms(&self, cells: &[Cell], most: Option<Duration>) -> Option<u64> {
        let most = most.map_or(u64::MAX, |time| {
            u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
        });
        let each = cells.iter().map(|cell| Some(self.cell_ms(cell)?.min(most)));
        each.reduce(|a, b| Some(a?.saturating_add(b?)))
            .unwrap_or(Some(0))
    }

    /// Milliseconds until a cell ends that is `share` done after `elapsed_ms`: by its own pace once it has one.
    pub fn left_ms(&self, cell: &Cell, share: f64, elapsed_ms: u64) -> Option<u64> {
        let forecast = self.cell_ms(cell);
        let enough = if forecast.is_some() { 0.05 } else { 0.001 };
        if share > enough {
            let whole = elapsed_ms as f64 / share.min(1.0);
            return Some((whole - elapsed_ms as f64) as u64);
        }
        Some(forecast?.saturating_sub(elapsed_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::plan::PlanKind;

    #[test]
    fn the_rate_is_that_of_the_last_second() {
        let mut rate = Rate::default();
        assert_eq!(rate.note(0, 0), 0.0);
        assert_eq!(rate.note(500_000_000, 50), 100.0);
        assert_eq!(rate.note(1_000_000_000, 100), 100.0);
        assert_eq!(rate.note(2_000_000_000, 400), 300.0);
    }

    #[test]
    fn a_cells_own_pace_beats_the_forecast() {
        let cell = Cell {
            kind: PlanKind::LongContext,
            input: 10_000,
            output: 100,
            concurrency: 1,
            requests: 4,
            arrivals: Default::default(),
        };
        let mut forecast = Forecast::default();
        assert_eq!(forecast.left_ms(&cell, 0.0, 10), None);
        assert_eq!(forecast.left_ms(&cell, 0.5, 1000), Some(1000));
        forecast.known = Some(Pace {
            ttft_ms_per_token: 0.1,
            tpot_ms: 10.0,
            concurrency: 1.0,
        });
        assert_eq!(forecast.cell_ms(&cell), Some(8000));
        assert_eq!(forecast.left_ms(&cell, 0.0, 500), Some(7500));
        assert_eq!(forecast.all_ms(&[cell, cell], None), Some(16_000));
        let most = Some(Duration::from_secs(3));
        assert_eq!(forecast.all_ms(&[cell, cell], most), Some(6_000));
        assert_eq!(Forecast::default().all_ms(&[], None), Some(0));
    }

    #[test]
    fn this_thread_has_used_some_cpu() {
        let before = thread_cpu_ns();
        let mut n = 0_u64;
        while thread_cpu_ns() == before {
            n += 1;
        }
        assert!(n < u64::MAX && thread_cpu_ns() > before);
    }
}
