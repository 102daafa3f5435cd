//! A run over its time, for the live charts. It stays small whatever the length of the run: when it is full, neighbours are joined.

use super::view::LiveWindow;
use crate::bench::Live;
use crate::bench::validity::plateau;
use crate::clock::Now;
use crate::engine::Load;
use std::collections::VecDeque;

/// Moments kept at most.
const MOST: usize = 600;
/// A moment without a successor is known for this long.
const HOLDS_MS: u64 = 2_000;
/// Readings in which a plateau must show, about three seconds: a level that begins is none.
const STEADY: usize = 15;

/// Least and most.
type Band = (f64, f64);
/// Least and most in one column of a chart; `None` where nothing is known.
pub type Span = Option<Band>;

/// One reading.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reading {
    /// Output tokens a second.
    pub rate: f64,
    pub ttft_ms: Option<f64>,
    /// Requests that the level keeps in flight.
    pub asked: u32,
    /// At the server, if it says so.
    pub running: Option<u64>,
    pub waiting: Option<u64>,
}

impl Reading {
    /// What the client and the server say at one moment.
    pub fn new(live: &Live, asked: u32, load: &Load) -> Self {
        Reading {
            rate: live.output_tok_s,
            ttft_ms: live.ttft_ms,
            asked,
            running: load.running.fresh().copied(),
            waiting: load.waiting.fresh().copied(),
        }
    }

    /// Requests at the server, running and waiting.
    pub fn seen(&self) -> Option<u64> {
        Some(self.running?.saturating_add(self.waiting.unwrap_or(0)))
    }
}

/// Some neighbouring readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Milliseconds from the start of the run.
    pub at_ms: u64,
    pub rate: Span,
    pub ttft_ms: Span,
    pub asked: Span,
    pub seen: Span,
}

impl Moment {
    fn of(at_ms: u64, reading: &Reading) -> Self {
        let one = |value: f64| value.is_finite().then_some((value, value));
        Moment {
            at_ms,
            rate: one(reading.rate),
            ttft_ms: reading.ttft_ms.and_then(one),
            asked: one(f64::from(reading.asked)),
            seen: reading.seen().and_then(|n| one(n as f64)),
        }
    }

    fn with(self, later: &Moment) -> Self {
        Moment {
            at_ms: self.at_ms,
            rate: join(self.rate, later.rate),
            ttft_ms: join(self.ttft_ms, later.ttft_ms),
            asked: join(self.asked, later.asked),
            seen: join(self.seen, later.seen),
        }
    }
}

fn join(a: Span, b: Span) -> Span {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (one, other) => one.or(other),
    }
}

/// The readings of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    pub since: Now,
    moments: Vec<Moment>,
    /// Readings that a moment joins, and how many the last one has.
    joins: usize,
    filled: usize,
    /// The newest readings, the newest last.
    recent: VecDeque<Reading>,
}

impl Timeline {
    pub fn new(since: Now) -> Self {
        Timeline {
            since,
            moments: Vec::new(),
            joins: 1,
            filled: 0,
            recent: VecDeque::new(),
        }
    }

    /// Adds a reading.
    pub fn push(&mut self, now: Now, reading: Reading) {
        if self.recent.len() == STEADY {
            self.recent.pop_front();
        }
        self.recent.push_back(reading);
        let moment = Moment::of(now.since(self.since), &reading);
        match self.moments.last_mut() {
            Some(last) if self.filled < self.joins => {
                *last = last.with(&moment);
                self.filled += 1;
                return;
            }
            _ => {}
        }
        if self.moments.len() == MOST {
            self.moments = self
                .moments
                .chunks(2)
                .filter_map(|pair| match pair {
                    [a, b] => Some(a.with(b)),
                    [a] => Some(*a),
                    _ => None,
                })
                .collect();
            self.joins *= 2;
        }
        self.moments.push(moment);
        self.filled = 1;
    }

    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// The newest reading.
    pub fn last(&self) -> Option<&Reading> {
        self.recent.back()
    }

    /// The newest output rates, oldest first.
    pub fn rates(&self) -> Vec<f64> {
        let known = self.moments.iter().filter_map(|m| m.rate);
        known.map(|(_, most)| most).collect()
    }

    /// Milliseconds from the start to the newest moment.
    pub fn end_ms(&self) -> u64 {
        self.moments.last().map_or(0, |m| m.at_ms)
    }

    /// One figure in `columns` columns over a window. A moment holds until the next one, if that is not far.
    pub fn spans(
        &self,
        window: LiveWindow,
        columns: usize,
        figure: impl Fn(&Moment) -> Span,
    ) -> Vec<Span> {
        let LiveWindow {
            from_ms,
            to_ms,
            end_ms,
        } = window;
        let mut out = vec![None; columns];
        let wide = to_ms.saturating_sub(from_ms).max(1) as f64;
        let column =
            |ms: u64| (ms.saturating_sub(from_ms) as f64 / wide * columns as f64).floor() as usize;
        let ends = self
            .moments
            .iter()
            .skip(1)
            .map(|m| m.at_ms)
            .chain(std::iter::once(u64::MAX));
        for (moment, next) in self.moments.iter().zip(ends) {
            let holds = HOLDS_MS.saturating_mul(self.joins as u64);
            let end = next.min(moment.at_ms.saturating_add(holds)).min(end_ms);
            if end < from_ms || moment.at_ms > end_ms {
                continue;
            }
            let (first, last) = (column(moment.at_ms), column(end));
            for slot in out.iter_mut().take(last.max(first + 1)).skip(first) {
                *slot = join(*slot, figure(moment));
            }
        }
        out
    }

    /// That the server does not run all that it is asked for, in words, once it shows for a few seconds.
    pub fn plateau(&self) -> Option<String> {
        let last = self.last()?;
        if self.recent.len() < STEADY || self.recent.iter().any(|r| r.asked != last.asked) {
            return None;
        }
        let running = self.recent.iter().map(|r| r.running.unwrap_or(0)).max()?;
        let waiting = self.recent.iter().map(|r| r.waiting.unwrap_or(0)).min()?;
        plateau(u64::from(last.asked), running, waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Now {
        Now {
            mono_ms: ms,
            unix_ms: 0,
        }
    }

    fn window(to_ms: u64, end_ms: u64) -> LiveWindow {
        LiveWindow {
            from_ms: 0,
            to_ms,
            end_ms,
        }
    }

    fn reading(rate: f64, running: u64, waiting: u64) -> Reading {
        Reading {
            rate,
            asked: 100,
            running: Some(running),
            waiting: Some(waiting),
            ..Reading::default()
        }
    }

    #[test]
    fn a_long_run_stays_small_and_keeps_its_peaks() {
        let mut line = Timeline::new(at(0));
        for i in 0..10_000u64 {
            let rate = if i == 777 { 900.0 } else { 50.0 };
            line.push(at(i * 200), reading(rate, 8, 92));
        }
        assert!(line.moments().len() <= MOST);
        let spans = line.spans(window(line.end_ms(), line.end_ms()), 50, |m| m.rate);
        assert!(spans.iter().all(Option::is_some), "no holes: {spans:?}");
        assert_eq!(spans.iter().flatten().filter(|s| s.1 == 900.0).count(), 1);
    }

    #[test]
    fn a_stall_in_the_readings_is_a_gap_and_no_line() {
        let mut line = Timeline::new(at(0));
        line.push(at(0), reading(50.0, 1, 0));
        line.push(at(10_000), reading(60.0, 1, 0));
        let spans = line.spans(window(12_000, 12_000), 12, |m| m.rate);
        assert_eq!(spans[1], Some((50.0, 50.0)));
        assert_eq!(spans[5], None);
        assert_eq!(spans[11], Some((60.0, 60.0)));
        let frozen = line.spans(window(12_000, 5_000), 12, |m| m.rate);
        assert_eq!(frozen[1], Some((50.0, 50.0)));
        assert!(frozen[5..].iter().all(Option::is_none), "{frozen:?}");
    }

    #[test]
    fn a_plateau_is_said_when_it_lasts() {
        let mut line = Timeline::new(at(0));
        for i in 0..14 {
            line.push(at(i * 200), reading(50.0, 8, 92));
        }
        assert_eq!(line.plateau(), None, "not yet");
        line.push(at(2_800), reading(50.0, 8, 92));
        let words = line.plateau().unwrap();
        assert!(words.starts_with("100 clients, 8 running"), "{words}");
        line.push(at(3_000), reading(50.0, 97, 0));
        assert_eq!(line.plateau(), None, "all run");
    }
}
