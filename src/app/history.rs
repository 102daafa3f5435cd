//! Memory of every card over the session, packed and bounded: one second a sample for the last hour, before that the least, the most and
//! the mean of each half minute.

use crate::gpu::Snapshot;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Samples kept at full resolution.
const FINE: usize = 3_600;
/// Fine samples that make one coarse one.
const FOLD: usize = 30;
/// Seconds between two samples from which on nobody read: a line does not go over it.
const GAP_S: i64 = 15;
/// Coarse samples kept: 24 hours.
const COARSE: usize = 2_880;
/// "Not known" in a packed sample.
const UNKNOWN: u32 = u32::MAX;

/// The used memory of all cards at one second (unix): MiB by card, `None` where unknown.
pub type Sample = (i64, Vec<Option<u32>>);

/// Least and most memory used in a span of time, in MiB; `None` where nobody could read it.
pub type Span = Option<(u32, u32)>;

/// Memory of a card over a span of time, in MiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    pub low: u32,
    pub high: u32,
    pub mean: f64,
}

/// What is left of some fine samples, in MiB; [`UNKNOWN`] in all three where none was known.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Coarse {
    low: u32,
    high: u32,
    mean: u32,
}

/// One card's samples, aligned with the times of its history.
#[derive(Debug, Clone, PartialEq, Default)]
struct Track {
    fine: VecDeque<u32>,
    coarse: VecDeque<Coarse>,
}

/// Used memory of all cards over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    /// Unix seconds of the fine samples.
    times: VecDeque<i64>,
    /// Unix seconds of the first and of the last sample in each coarse one.
    coarse_times: VecDeque<(i64, i64)>,
    tracks: Vec<Track>,
}

impl History {
    /// Adds the reading of all cards of that second. A second snapshot in the same second replaces nothing and is dropped; whether it was
    /// taken.
    pub fn push(&mut self, second: i64, snapshot: &Snapshot) -> bool {
        if self.times.back().is_some_and(|last| *last >= second) {
            return false;
        }
        let used = snapshot
            .cards
            .iter()
            .map(|card| card.memory.fresh().map(|m| mib(m.used)));
        self.append(second, used.collect());
        true
    }

    /// Puts a stored sample back: `used` in MiB by card, `None` where unknown. Samples come in the order of time.
    pub fn append(&mut self, second: i64, used: Vec<Option<u32>>) {
        while self.tracks.len() < used.len() {
            let mut track = Track::default();
            track
                .fine
                .extend(std::iter::repeat_n(UNKNOWN, self.times.len()));
            track.coarse.extend(std::iter::repeat_n(
                Coarse::UNKNOWN,
                self.coarse_times.len(),
            ));
            self.tracks.push(track);
        }
        self.times.push_back(second);
        for (i, track) in self.tracks.iter_mut().enumerate() {
            track
                .fine
                .push_back(used.get(i).copied().flatten().unwrap_or(UNKNOWN));
        }
        if self.times.len() > FINE + FOLD {
            self.fold();
        }
    }

    /// Makes one coarse sample of the oldest fine ones, as far as they follow one another.
    fn fold(&mut self) {
        let Some(first) = self.times.front().copied() else {
            return;
        };
        let (mut last, mut count) = (first, 0);
        for second in self.times.iter().take(FOLD) {
            if second - last > GAP_S {
                break;
            }
            (last, count) = (*second, count + 1);
        }
        self.times.drain(..count);
        self.coarse_times.push_back((first, last));
        for track in &mut self.tracks {
            let folded = Coarse::of(track.fine.drain(..count.min(track.fine.len())));
            track.coarse.push_back(folded);
            if track.coarse.len() > COARSE {
                track.coarse.pop_front();
            }
        }
        if self.coarse_times.len() > COARSE {
            self.coarse_times.pop_front();
        }
    }

    /// How many cards have a track.
    pub fn cards(&self) -> usize {
        self.tracks.len()
    }

    /// First and last second on record.
    pub fn extent(&self) -> Option<(i64, i64)> {
        let coarse = self.coarse_times.front().map(|(first, _)| first);
        let first = coarse.or(self.times.front())?;
        Some((*first, *self.times.back()?))
    }

    /// The memory of `card` between the seconds `from` and `to` in `columns` equal spans. Between two samples that follow one another
    /// there is no gap, however narrow the columns are.
    pub fn columns(&self, card: usize, from: i64, to: i64, columns: usize) -> Vec<Span> {
        let mut out = Columns::new(from, to, columns);
        let Some(track) = self.tracks.get(card).filter(|_| to > from) else {
            return out.spans;
        };
        let start = self.coarse_times.partition_point(|(_, last)| *last < from);
        let coarse = self
            .coarse_times
            .range(start..)
            .zip(track.coarse.range(start..));
        for ((first, last), value) in coarse {
            if *first > to {
                return out.spans;
            }
            out.put(*first, *last, value.low, value.high);
        }
        let start = self.times.partition_point(|second| *second < from);
        for (second, value) in self.times.range(start..).zip(track.fine.range(start..)) {
            if *second > to {
                break;
            }
            out.put(*second, *second, *value, *value);
        }
        out.spans
    }

    /// The memory of `card` in the `step` seconds from `second` on; `None` where nobody could read it.
    pub fn reach(&self, card: usize, second: i64, step: i64) -> Option<Reach> {
        let track = self.tracks.get(card)?;
        let end = second.saturating_add(step);
        let start = self
            .coarse_times
            .partition_point(|(_, last)| *last < second);
        let coarse = self
            .coarse_times
            .range(start..)
            .zip(track.coarse.range(start..))
            .take_while(|((first, _), _)| *first < end)
            .map(|(_, value)| (*value, FOLD as f64));
        let start = self.times.partition_point(|at| *at < second);
        let fine = self
            .times
            .range(start..)
            .zip(track.fine.range(start..))
            .take_while(|(at, _)| **at < end)
            .map(|(_, value)| (Coarse::one(*value), 1.0));
        let known = coarse.chain(fine).filter(|(value, _)| value.low != UNKNOWN);
        let (mut found, mut weight): (Option<Reach>, f64) = (None, 0.0);
        for (value, weighs) in known {
            weight += weighs;
            let so_far = found.unwrap_or(Reach {
                low: value.low,
                high: value.high,
                mean: f64::from(value.mean),
            });
            found = Some(Reach {
                low: so_far.low.min(value.low),
                high: so_far.high.max(value.high),
                mean: so_far.mean + (f64::from(value.mean) - so_far.mean) * weighs / weight,
            });
        }
        found
    }

    /// The newest sample of a card, MiB.
    pub fn last(&self, card: usize) -> Option<u32> {
        self.tracks
            .get(card)?
            .fine
            .back()
            .copied()
            .filter(|v| *v != UNKNOWN)
    }

    /// The newest value of a card that was read, MiB.
    pub fn last_known(&self, card: usize) -> Option<u32> {
        let track = self.tracks.get(card)?;
        let fine = track.fine.iter().rev().copied();
        let mut all = fine.chain(track.coarse.iter().rev().map(|value| value.high));
        all.find(|mib| *mib != UNKNOWN)
    }
}

impl Coarse {
    const UNKNOWN: Coarse = Coarse::one(UNKNOWN);

    const fn one(value: u32) -> Coarse {
        Coarse {
            low: value,
            high: value,
            mean: value,
        }
    }

    fn of(values: impl Iterator<Item = u32>) -> Coarse {
        let (mut low, mut high, mut sum, mut known) = (UNKNOWN, 0, 0_u64, 0_u64);
        for value in values.filter(|value| *value != UNKNOWN) {
            (low, high) = (low.min(value), high.max(value));
            (sum, known) = (sum + u64::from(value), known + 1);
        }
        match sum.checked_div(known) {
            Some(mean) => Coarse {
                low,
                high,
                mean: u32::try_from(mean).unwrap_or(high),
            },
            None => Coarse::UNKNOWN,
        }
    }
}

/// Samples in the order of time, put into equal spans of it.
struct Columns {
    spans: Vec<Span>,
    from: i64,
    width: i64,
    /// The column of the last sample, where the next one begins, and when and what the last known value was.
    at: usize,
    next: i64,
    last: Option<(i64, u32, u32)>,
}

impl Columns {
    fn new(from: i64, to: i64, columns: usize) -> Self {
        let mut new = Columns {
            spans: vec![None; columns],
            from,
            width: to.saturating_sub(from),
            at: 0,
            next: 0,
            last: None,
        };
        new.next = new.end(0);
        new
    }

    /// The first second after column `at`.
    fn end(&self, at: usize) -> i64 {
        let columns = self.spans.len().max(1) as i64;
        let whole = self.width.saturating_mul(at as i64 + 1);
        // Up, so that the column of a second is the one that a division down would give.
        let up = whole.saturating_add(columns - 1).div_euclid(columns);
        self.from.saturating_add(up)
    }

    /// Goes on to the column of `second`. No second is looked for twice, so nothing is divided for each sample.
    fn go(&mut self, second: i64) {
        while second >= self.next && self.at + 1 < self.spans.len() {
            self.at += 1;
            self.next = self.end(self.at);
        }
    }

    fn put(&mut self, first: i64, last: i64, low: u32, high: u32) {
        if low == UNKNOWN {
            self.last = None;
            return;
        }
        if last < self.next
            && let Some(span) = self.spans.get_mut(self.at)
        {
            // Most samples stand in the column of the one before.
            *span = Some(span.map_or((low, high), |(a, b)| (a.min(low), b.max(high))));
            self.last = Some((last, low, high));
            return;
        }
        let before = self.at;
        self.go(first);
        if let Some((then, low, high)) = self.last
            && first - then <= GAP_S
        {
            for span in self.spans.iter_mut().take(self.at).skip(before + 1) {
                *span = Some((low, high));
            }
        }
        let begin = self.at;
        self.go(last);
        for span in self.spans.iter_mut().take(self.at + 1).skip(begin) {
            *span = Some(span.map_or((low, high), |(a, b)| (a.min(low), b.max(high))));
        }
        self.last = Some((last, low, high));
    }
}

fn mib(bytes: u64) -> u32 {
    u32::try_from(bytes / 1_048_576).unwrap_or(UNKNOWN - 1)
}

/// What a mark on the time axis stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    Stop,
    Start,
    /// Of a start.
    Phase,
    Ready,
    Failed,
    /// It does not answer any more, or has ended.
    Lost,
    /// It answers again.
    Back,
    Bench,
    Decision,
    /// The operator's own.
    Own,
}

impl MarkKind {
    /// The word beside the line.
    pub fn word(self) -> &'static str {
        match self {
            MarkKind::Stop => "stop",
            MarkKind::Start => "start",
            MarkKind::Phase => "phase",
            MarkKind::Ready => "ready",
            MarkKind::Failed => "failed",
            MarkKind::Lost => "lost",
            MarkKind::Back => "answers again",
            MarkKind::Bench => "bench",
            MarkKind::Decision => "decision",
            MarkKind::Own => "mark",
        }
    }
}

/// A moment that explains the memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub unix_ms: i64,
    pub kind: MarkKind,
    /// The context in question, per request.
    pub context: Option<u64>,
    /// What more there is to say (`throughput`).
    pub text: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_sixteen_cards_stays_bounded_and_keeps_its_extremes() {
        let mut history = History::default();
        for second in 0..86_400 {
            let spike = second == 100;
            history.append(second, vec![Some(if spike { 9_000 } else { 1_000 }); 16]);
        }
        assert!(history.times.len() <= FINE + FOLD);
        assert!(history.coarse_times.len() <= COARSE);
        let columns = history.columns(15, 0, 86_399, 160);
        assert_eq!(columns.len(), 160);
        assert_eq!(
            columns[0],
            Some((1_000, 9_000)),
            "the spike of the first minutes is kept"
        );
        assert!(columns.iter().all(Option::is_some));
        let first = history.reach(15, 90, 30).unwrap();
        assert_eq!((first.low, first.high), (1_000, 9_000));
        assert!((first.mean - 1_266.0).abs() < 1.0, "{first:?}");
        // Of an old hour, where the samples are wider than the columns, the line is whole too.
        let old = history.columns(15, 3_600, 4_500, 400);
        assert!(old.iter().all(Option::is_some));
    }

    #[test]
    fn a_time_without_the_cockpit_stays_a_gap_when_it_is_old() {
        let mut history = History::default();
        for second in (0..20).chain(1_000..6_000) {
            history.append(second, vec![Some(500)]);
        }
        assert_eq!(history.coarse_times.front(), Some(&(0, 19)));
        let columns = history.columns(0, 0, 2_000, 100);
        assert!(columns[0].is_some() && columns[60].is_some());
        assert!(columns[2..49].iter().all(Option::is_none), "{columns:?}");
        assert_eq!(history.reach(0, 100, 60), None);
    }

    #[test]
    fn every_sample_stands_in_the_column_of_its_second() {
        let mut history = History::default();
        for second in 0..=100 {
            history.append(second, vec![Some(second as u32)]);
        }
        for columns in [1, 3, 7, 40, 99] {
            let spans = history.columns(0, 0, 100, columns);
            for (at, span) in spans.iter().enumerate() {
                let seconds = (0..=100).filter(|s| (s * columns / 100).min(columns - 1) == at);
                let (low, high) = (seconds.clone().min(), seconds.max());
                let expected = low.zip(high).map(|(a, b)| (a as u32, b as u32));
                assert_eq!(*span, expected, "{columns} {at}");
            }
        }
        // A reading every five seconds is a line; one that failed between two is a gap.
        let mut slow = History::default();
        for second in (0..200).step_by(5) {
            slow.append(second, vec![(second != 100).then_some(7)]);
        }
        let spans = slow.columns(0, 0, 200, 200);
        assert!(spans[..96].iter().all(Option::is_some));
        assert!(spans[96..105].iter().all(Option::is_none), "{spans:?}");
    }

    #[test]
    fn unknown_is_a_gap_and_a_new_card_starts_late() {
        let mut history = History::default();
        for second in 0..100 {
            history.append(second, vec![(!(40..60).contains(&second)).then_some(500)]);
        }
        history.append(100, vec![Some(500), Some(700)]);
        let columns = history.columns(0, 0, 100, 50);
        assert!(columns[25].is_none(), "{columns:?}");
        assert!(columns[5].is_some() && columns[45].is_some());
        assert_eq!(history.columns(1, 0, 100, 50).iter().flatten().count(), 1);
        assert_eq!(history.last(1), Some(700));
        history.append(101, vec![None, None]);
        assert_eq!((history.last(1), history.last_known(1)), (None, Some(700)));
    }

    #[test]
    fn few_samples_in_many_columns_make_a_line() {
        let mut history = History::default();
        for second in 0..=10 {
            history.append(second, vec![Some(100)]);
        }
        assert!(
            history
                .columns(0, 0, 10, 100)
                .iter()
                .filter(|c| c.is_none())
                .count()
                < 10
        );
        assert_eq!(history.columns(0, 10, 10, 100).iter().flatten().count(), 0);
        assert!(history.columns(3, 0, 10, 0).is_empty());
    }
}
