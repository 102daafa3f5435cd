//! Which part of the memory history is on screen: how long, up to when, where the cursor stands, and two starts over each other.

use super::history::{Mark, MarkKind};

/// Lengths of the window in seconds; after the last comes the whole session.
const LENGTHS: [i64; 6] = [60, 5 * 60, 15 * 60, 60 * 60, 4 * 3600, 24 * 3600];
/// Lengths that a young session fills, one after the other, before its window is full.
const YOUNG: [i64; 9] = [60, 120, 300, 900, 1_800, 3_600, 14_400, 43_200, 86_400];
/// Steps of the cursor in a window.
const STEPS: i64 = 100;
/// Parts of a window by which it is scrolled.
const PARTS: i64 = 4;

/// What the operator has chosen to see. Times are unix seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Its length; `None`: the whole session.
    pub length_s: Option<i64>,
    /// Its right end; `None`: the present.
    pub end: Option<i64>,
    /// Where values are read.
    pub cursor: Option<i64>,
    /// This start is drawn over the last one instead.
    pub overlaid: bool,
}

impl Default for Window {
    fn default() -> Self {
        Window {
            length_s: Some(15 * 60),
            end: None,
            cursor: None,
            overlaid: false,
        }
    }
}

/// What there is to see: the first second on record and the present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    pub first: i64,
    pub now: i64,
}

impl Window {
    /// Its two ends. A session that is younger than the window fills a shorter one from the left.
    pub fn ends(&self, record: Record) -> (i64, i64) {
        let age = record.now.saturating_sub(record.first).max(0);
        match self.length_s {
            Some(length) if age >= length => {
                let end = self.end.unwrap_or(record.now).min(record.now);
                let end = end.max(record.first.saturating_add(length));
                (end.saturating_sub(length), end)
            }
            length => {
                let fitting = YOUNG.into_iter().find(|young| *young >= age);
                let fitting = fitting.unwrap_or(age).min(length.unwrap_or(i64::MAX));
                let first = record.now.saturating_sub(age);
                (first, first.saturating_add(fitting.max(age)))
            }
        }
    }

    /// Shows more time, or less. The cursor stays on screen, else the right end stays where it is.
    pub fn zoom(&mut self, longer: bool, record: Record) {
        self.length_s = match (self.length_s, longer) {
            (None, true) => None,
            (None, false) => LENGTHS.last().copied(),
            (Some(now), true) => LENGTHS.into_iter().find(|length| *length > now),
            (Some(now), false) => {
                let shorter = LENGTHS.into_iter().rev().find(|length| *length < now);
                shorter.or(Some(now))
            }
        };
        if let Some(cursor) = self.cursor {
            self.show(cursor, record);
        }
    }

    /// Moves the window by a part of its length.
    pub fn scroll(&mut self, later: bool, record: Record) {
        let (from, to) = self.ends(record);
        let by = (to.saturating_sub(from) / PARTS).max(1);
        let end = if later {
            to.saturating_add(by)
        } else {
            to.saturating_sub(by)
        };
        let first = record.first.saturating_add(to.saturating_sub(from));
        self.end = Some(end.max(first)).filter(|end| *end < record.now);
        self.cursor = self.cursor.map(|cursor| {
            let (from, to) = self.ends(record);
            cursor.clamp(from, to.min(record.now))
        });
    }

    /// Moves the cursor one step, beginning at the right end; the window follows.
    pub fn move_cursor(&mut self, later: bool, record: Record) {
        let (from, to) = self.ends(record);
        let step = self.step(record);
        let newest = to.min(record.now);
        let cursor = match (self.cursor, later) {
            (None, _) => newest,
            (Some(at), true) => at.saturating_add(step).min(record.now),
            (Some(at), false) => at.saturating_sub(step).max(record.first),
        };
        self.cursor = Some(cursor);
        if cursor < from || cursor > to {
            self.show(cursor, record);
        }
    }

    /// Seconds that the cursor stands for.
    pub fn step(&self, record: Record) -> i64 {
        let (from, to) = self.ends(record);
        (to.saturating_sub(from) / STEPS).max(1)
    }

    /// Moves the window so that `second` is in it.
    fn show(&mut self, second: i64, record: Record) {
        let (from, to) = self.ends(record);
        let length = to.saturating_sub(from);
        if second < from {
            self.end = Some(second.saturating_add(length));
        } else if second > to {
            self.end = Some(second).filter(|end| *end < record.now);
        }
    }

    /// Takes back what was chosen last. False: nothing was.
    pub fn back(&mut self) -> bool {
        if self.overlaid {
            self.overlaid = false;
        } else if self.cursor.take().is_none() {
            return self.end.take().is_some();
        }
        true
    }
}

/// One start of a server, as the marks tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Unix seconds.
    pub at: i64,
    pub context: Option<u64>,
    /// How it ended and when; `None`: it goes on.
    pub end: Option<(i64, MarkKind)>,
}

/// The last two starts, the earlier one first.
pub fn last_starts(marks: &[Mark]) -> Option<[Start; 2]> {
    let mut starts = marks
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, mark)| mark.kind == MarkKind::Start)
        .map(|(place, mark)| Start {
            at: mark.unix_ms.div_euclid(1000),
            context: mark.context,
            end: marks
                .iter()
                .skip(place + 1)
                .find(|mark| {
                    use MarkKind::{Failed, Ready, Start, Stop};
                    matches!(mark.kind, Ready | Failed | Stop | Start)
                })
                .map(|mark| (mark.unix_ms.div_euclid(1000), mark.kind)),
        });
    let this = starts.next()?;
    Some([starts.next()?, this])
}

/// Seconds that show both starts to their ends and a little more.
pub fn overlay_length(starts: &[Start; 2], now: i64) -> i64 {
    let took = |start: &Start| {
        let end = start.end.map_or(now, |(at, _)| at);
        end.saturating_sub(start.at).max(0)
    };
    let longest = starts.iter().map(took).max().unwrap_or(0);
    longest.saturating_add(longest / 4).max(60)
}

/// What the server did at a moment, by the marks of its restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    Serving(Option<u64>),
    Stopped,
    Starting(Option<u64>),
    Failed(Option<u64>),
    /// It did not answer any more.
    Lost(Option<u64>),
    /// Nothing tells.
    Unknown,
}

/// What the server did at `second`. Before the first mark it served what was stopped or lost then, or what runs now (`present`).
pub fn doing(marks: &[Mark], second: i64, present: Option<u64>) -> Doing {
    let at = |mark: &&Mark| mark.unix_ms.div_euclid(1000) <= second;
    let told = marks
        .iter()
        .rev()
        .filter(at)
        .find_map(|mark| match mark.kind {
            MarkKind::Stop => Some(Doing::Stopped),
            MarkKind::Start => Some(Doing::Starting(mark.context)),
            MarkKind::Ready | MarkKind::Back => Some(Doing::Serving(mark.context)),
            MarkKind::Failed => Some(Doing::Failed(mark.context)),
            MarkKind::Lost => Some(Doing::Lost(mark.context)),
            MarkKind::Phase | MarkKind::Bench | MarkKind::Decision | MarkKind::Own => None,
        });
    told.unwrap_or_else(|| {
        use MarkKind::{Back, Failed, Lost, Ready, Start, Stop};
        let of_server =
            |mark: &&Mark| matches!(mark.kind, Stop | Start | Ready | Failed | Lost | Back);
        match marks.iter().find(of_server) {
            None => Doing::Serving(present),
            Some(first) if matches!(first.kind, Stop | Lost) => Doing::Serving(first.context),
            Some(_) => Doing::Unknown,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Record = Record {
        first: 0,
        now: 86_400,
    };

    fn mark(second: i64, kind: MarkKind, context: u64) -> Mark {
        Mark {
            unix_ms: second * 1000,
            kind,
            context: Some(context),
            text: None,
        }
    }

    fn restarts() -> Vec<Mark> {
        use MarkKind::*;
        vec![
            mark(100, Stop, 32),
            mark(110, Start, 64),
            mark(150, Failed, 64),
            mark(150, Start, 32),
            mark(190, Ready, 32),
            mark(195, Bench, 32),
            mark(200, Stop, 32),
            mark(210, Start, 48),
        ]
    }

    #[test]
    fn what_is_not_known_of_the_server_is_not_said() {
        let marks = [
            mark(100, MarkKind::Start, 32_768),
            mark(160, MarkKind::Ready, 32_768),
            mark(500, MarkKind::Lost, 32_768),
            mark(600, MarkKind::Back, 32_768),
            mark(700, MarkKind::Stop, 32_768),
        ];
        let at = |second| doing(&marks, second, Some(65_536));
        assert_eq!(at(50), Doing::Unknown, "before its first start");
        assert_eq!(at(300), Doing::Serving(Some(32_768)));
        assert_eq!(at(550), Doing::Lost(Some(32_768)));
        assert_eq!(at(650), Doing::Serving(Some(32_768)));
        let lost_first = doing(&marks[2..], 50, None);
        assert_eq!(lost_first, Doing::Serving(Some(32_768)));
    }

    #[test]
    fn it_zooms_from_a_minute_to_the_whole_session() {
        let mut window = Window::default();
        assert_eq!(window.ends(DAY), (85_500, 86_400));
        for _ in 0..9 {
            window.zoom(false, DAY);
        }
        assert_eq!(window.ends(DAY), (86_340, 86_400));
        for _ in 0..9 {
            window.zoom(true, DAY);
        }
        assert_eq!((window.length_s, window.ends(DAY)), (None, (0, 86_400)));
        let young = Record { first: 0, now: 70 };
        assert_eq!(
            Window::default().ends(young),
            (0, 120),
            "filled from the left"
        );
    }

    #[test]
    fn it_scrolls_to_the_first_second_and_back_to_the_present() {
        let mut window = Window::default();
        window.scroll(false, DAY);
        assert_eq!(window.ends(DAY), (85_275, 86_175));
        for _ in 0..1_000 {
            window.scroll(false, DAY);
        }
        assert_eq!(window.ends(DAY), (0, 900));
        for _ in 0..1_000 {
            window.scroll(true, DAY);
        }
        assert_eq!((window.end, window.ends(DAY)), (None, (85_500, 86_400)));
    }

    #[test]
    fn the_cursor_begins_at_the_present_and_takes_the_window_along() {
        let mut window = Window::default();
        window.move_cursor(false, DAY);
        assert_eq!(window.cursor, Some(86_400));
        window.move_cursor(false, DAY);
        assert_eq!((window.cursor, window.end), (Some(86_391), None));
        for _ in 0..150 {
            window.move_cursor(false, DAY);
        }
        let (from, to) = window.ends(DAY);
        let cursor = window.cursor.unwrap();
        assert!((from..=to).contains(&cursor) && to < DAY.now, "{window:?}");
        window.zoom(false, DAY);
        let (from, to) = window.ends(DAY);
        assert!((from..=to).contains(&cursor), "{window:?}");
        window.scroll(true, DAY);
        let (from, to) = window.ends(DAY);
        assert!((from..=to).contains(&window.cursor.unwrap()), "{window:?}");
        assert!(window.back() && window.cursor.is_none());
        assert!(window.back() && window.end.is_none());
        assert!(!window.back());
    }

    #[test]
    fn two_starts_lie_over_each_other_until_both_have_ended() {
        let starts = last_starts(&restarts()).unwrap();
        assert_eq!(starts[0].at, 150);
        assert_eq!(starts[0].end, Some((190, MarkKind::Ready)));
        assert_eq!((starts[1].context, starts[1].end), (Some(48), None));
        assert_eq!(overlay_length(&starts, 290), 100);
        assert_eq!(overlay_length(&starts, 211), 60);
        assert_eq!(last_starts(&restarts()[..3]), None);
    }

    #[test]
    fn the_marks_tell_what_the_server_did() {
        let at = |second| doing(&restarts(), second, Some(48));
        assert_eq!(at(50), Doing::Serving(Some(32)), "what was stopped then");
        assert_eq!(at(105), Doing::Stopped);
        assert_eq!(at(149), Doing::Starting(Some(64)));
        assert_eq!(at(197), Doing::Serving(Some(32)));
        assert_eq!(at(500), Doing::Starting(Some(48)));
        assert_eq!(doing(&[], 0, Some(7)), Doing::Serving(Some(7)));
    }
}
