//! Memory of every card over the session, packed and bounded: one second a sample for the last hour, one minimum and maximum a
//! half minute before that.

use crate::gpu::Snapshot;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Samples kept at full resolution.
const FINE: usize = 3_600;
/// Fine samples that make one coarse one.
const FOLD: usize = 30;
/// Coarse samples kept: 24 hours.
const COARSE: usize = 2_880;
/// "Not known" in a packed sample.
const UNKNOWN: u32 = u32::MAX;

/// The used memory of all cards at one second (unix): MiB by card, `None` where unknown.
pub type Sample = (i64, Vec<Option<u32>>);

/// Least and most memory used in a span of time, in MiB; `None` where nobody could read it.
pub type Span = Option<(u32, u32)>;

/// One card's samples, aligned with the times of its history.
#[derive(Debug, Clone, PartialEq, Default)]
struct Track {
    fine: VecDeque<u32>,
    coarse: VecDeque<(u32, u32)>,
}

/// Used memory of all cards over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    /// Unix seconds of the fine samples.
    times: VecDeque<i64>,
    /// Unix seconds at which coarse samples begin.
    coarse_times: VecDeque<i64>,
    tracks: Vec<Track>,
}

impl History {
    /// Adds one reading of all cards. A second snapshot in the same second replaces nothing and is dropped.
    pub fn push(&mut self, snapshot: &Snapshot) {
        let second = snapshot.at.unix_ms.div_euclid(1000);
        if self.times.back().is_some_and(|last| *last >= second) {
            return;
        }
        let used = snapshot
            .cards
            .iter()
            .map(|card| card.memory.fresh().map(|m| mib(m.used)));
        self.append(second, used.collect());
    }

    /// Puts a stored sample back: `used` in MiB by card, `None` where unknown. Samples come in the order of time.
    pub fn append(&mut self, second: i64, used: Vec<Option<u32>>) {
        while self.tracks.len() < used.len() {
            let mut track = Track::default();
            track
                .fine
                .extend(std::iter::repeat_n(UNKNOWN, self.times.len()));
            track.coarse.extend(std::iter::repeat_n(
                (UNKNOWN, UNKNOWN),
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

    fn fold(&mut self) {
        let Some(first) = self.times.front().copied() else {
            return;
        };
        self.times.drain(..FOLD.min(self.times.len()));
        self.coarse_times.push_back(first);
        for track in &mut self.tracks {
            let spans = track
                .fine
                .drain(..FOLD.min(track.fine.len()))
                .filter(|v| *v != UNKNOWN);
            let folded = spans.fold(None, |span: Span, v| {
                Some(span.map_or((v, v), |(lo, hi)| (lo.min(v), hi.max(v))))
            });
            track.coarse.push_back(folded.unwrap_or((UNKNOWN, UNKNOWN)));
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
        let first = self.coarse_times.front().or(self.times.front())?;
        Some((*first, *self.times.back()?))
    }

    /// The memory of `card` between the seconds `from` and `to` in `columns` equal spans.
    pub fn columns(&self, card: usize, from: i64, to: i64, columns: usize) -> Vec<Span> {
        let mut out: Vec<Span> = vec![None; columns];
        let Some(track) = self.tracks.get(card) else {
            return out;
        };
        if to <= from || columns == 0 {
            return out;
        }
        let width = to - from;
        let mut put = |second: i64, lo: u32, hi: u32| {
            if lo == UNKNOWN || second < from || second > to {
                return;
            }
            let at = ((second - from) as i128 * columns as i128 / i128::from(width)) as usize;
            if let Some(slot) = out.get_mut(at.min(columns - 1)) {
                *slot = Some(slot.map_or((lo, hi), |(a, b)| (a.min(lo), b.max(hi))));
            }
        };
        let start = self.coarse_times.partition_point(|t| *t < from);
        for (second, (lo, hi)) in self.coarse_times.iter().zip(&track.coarse).skip(start) {
            put(*second, *lo, *hi);
        }
        let start = self.times.partition_point(|t| *t < from);
        for (second, value) in self.times.iter().zip(&track.fine).skip(start) {
            put(*second, *value, *value);
        }
        bridge(&mut out, columns, width);
        out
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
        let mut all = fine.chain(track.coarse.iter().rev().map(|(_, high)| *high));
        all.find(|mib| *mib != UNKNOWN)
    }
}

/// Fills columns that are narrower than the time between two samples, so that a line stays a line; a real gap stays a gap.
fn bridge(out: &mut [Span], columns: usize, width: i64) {
    // A sample a second (or a half minute, folded): columns between two of them are no gap.
    let reach = (columns as i64 * 3 / width.max(1)).max(1) as usize;
    let mut last: Option<(usize, (u32, u32))> = None;
    for i in 0..out.len() {
        let Some(span) = out.get(i).copied().flatten() else {
            continue;
        };
        if let Some((at, value)) = last
            && i - at <= reach
        {
            for slot in out.iter_mut().take(i).skip(at + 1) {
                *slot = Some(value);
            }
        }
        last = Some((i, span));
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
    Ready,
    Failed,
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
            MarkKind::Ready => "ready",
            MarkKind::Failed => "failed",
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
