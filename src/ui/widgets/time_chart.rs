//! Several series over time, packed in columns, with marks that explain them.
//!
//! ```text
//! GiB
//!  48┤      ┊bench       ┊stop ┊start 65,536
//!    │⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⢤     ┊      ⡠⠤⠤⠤⠤⠤⠤⠤⠤   41.6 ● 0
//!   0┤                   ⠈⠉⠉⠉⠉⠉⠉⠁                41.5 ● 1
//!    └────────────────────────────────────────
//!    12:26              12:31              12:36
//! ```

use super::super::pen::{Pen, cells, first_columns, from_column, from_row, row};
use super::super::words::width;
use super::axis::{dot_row, time_step};
use super::dots::{ACROSS, DOWN, Dots};
use crate::clock::{hm, hms};
use crate::theme::Role;
use crate::units::mm_ss;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Least and most in one column of dots; `None` where it is unknown.
pub type Span = Option<(f64, f64)>;

/// One line.
#[derive(Debug)]
pub struct Series {
    pub style: Style,
    /// What its line is made of where there is no braille.
    pub sign: char,
    /// Written at the end of the line, after the last value; empty: nothing stands there.
    pub name: String,
    /// One span for each column of dots, two a cell.
    pub spans: Vec<Span>,
    /// The newest value, in words; `None` where it is unknown.
    pub last: Option<String>,
    /// The newest value.
    pub last_value: Option<f64>,
}

/// A moment on the time axis.
#[derive(Debug)]
pub struct TimeMark {
    /// Unix seconds.
    pub at: i64,
    pub words: String,
    pub style: Style,
    /// It has a tick instead of a line, and words only where nothing else stands.
    pub minor: bool,
}

/// The chart.
#[derive(Debug)]
pub struct TimeChart<'a> {
    /// Unix seconds at the left and at the right end.
    pub from: i64,
    pub to: i64,
    /// Times are counted from here; `None`: they are times of day.
    pub zero: Option<i64>,
    /// Where values are read, unix seconds.
    pub cursor: Option<i64>,
    /// The top of the scale; the bottom is zero.
    pub high: f64,
    pub unit: &'a str,
    pub series: &'a [Series],
    pub marks: &'a [TimeMark],
}

/// Whether no line of the chart runs through these cells.
fn blank(pen: &Pen<'_>, plot: Rect, line: u16, start: u16, wide: u16) -> bool {
    let mark = pen.glyphs().mark;
    (start..start + wide).all(|x| {
        pen.buf
            .cell((x, plot.y + line))
            .is_some_and(|cell| cell.symbol() == " " || cell.symbol() == mark)
    })
}

/// Cells at the left for the scale.
pub const LEFT: u16 = 5;
/// Rows under the plot: the axis and its labels.
const BELOW: u16 = 2;

/// Where the plot of a chart in `area` lies. `right`: cells for the last values.
pub fn plot(area: Rect, right: u16) -> Rect {
    Rect {
        x: area.x.saturating_add(LEFT),
        y: area.y.saturating_add(1),
        width: area.width.saturating_sub(LEFT + right),
        height: area.height.saturating_sub(BELOW + 1),
    }
}

/// Columns of dots that a plot has.
pub fn dot_columns(plot: Rect) -> usize {
    usize::from(plot.width) * ACROSS
}

impl TimeChart<'_> {
    /// Cells that the last values need at the right.
    pub fn right(series: &[Series]) -> u16 {
        let longest = series
            .iter()
            .filter(|one| !one.name.is_empty())
            .map(|one| width(&one.name) + one.last.as_deref().map_or(1, width))
            .max();
        cells(longest.map_or(0, |n| n + 4))
    }

    /// Draws into `area`; the spans must have been made for [`dot_columns`] of its [`plot`].
    pub fn draw(&self, pen: &mut Pen<'_>, area: Rect) {
        let plot = plot(area, Self::right(self.series));
        if plot.width < 8 || plot.height < 2 {
            return;
        }
        let unit = pen.words().dim(self.unit);
        pen.put(first_columns(row(area, 0), LEFT), unit);
        self.scale(pen, plot);
        self.times(pen, plot);
        self.mark_lines(pen, plot);
        self.lines(pen, plot);
        self.cursor_line(pen, plot);
        self.mark_words(pen, plot);
        self.last_values(pen, area, plot);
    }

    fn scale(&self, pen: &mut Pen<'_>, plot: Rect) {
        let parts = match plot.height {
            0..4 => 1,
            4..9 => 2,
            _ => 4,
        };
        let axis = pen.style(Role::Axis);
        let (line, corner) = (pen.glyphs().axis, pen.glyphs().corner);
        for y in plot.y..plot.bottom() {
            pen.sign(plot.x - 1, y, line, axis);
        }
        pen.sign(plot.x - 1, plot.bottom(), corner, axis);
        for part in 0..=parts {
            let value = self.high * f64::from(part) / f64::from(parts);
            let y = plot.y
                + cells(dot_row(value, 0.0, self.high, usize::from(plot.height) * DOWN) / DOWN);
            let whole = (self.high / f64::from(parts)).fract().abs() < 0.05;
            let text = if whole || value == 0.0 {
                format!("{value:.0}")
            } else {
                format!("{value:.1}")
            };
            let at = Rect {
                x: plot.x.saturating_sub(LEFT),
                y,
                width: LEFT - 1,
                height: 1,
            };
            let words = pen.words().dim(text);
            pen.put_right(at, words);
            let tick = pen.glyphs().tick;
            pen.sign(plot.x - 1, y, tick, axis);
        }
        let base = pen.glyphs().base;
        for x in plot.x..plot.right() {
            pen.sign(x, plot.bottom(), base, axis);
        }
    }

    fn column_of(&self, second: i64, plot: Rect) -> Option<u16> {
        let span = self.to.saturating_sub(self.from);
        if span <= 0 || second < self.from || second > self.to {
            return None;
        }
        let share = second.saturating_sub(self.from) as f64 / span as f64;
        Some(plot.x + (share * f64::from(plot.width - 1)).round() as u16)
    }

    fn times(&self, pen: &mut Pen<'_>, plot: Rect) {
        let step = time_step(
            self.to.saturating_sub(self.from),
            usize::from(plot.width / 14),
        );
        let mut at = self.from.div_euclid(step).saturating_mul(step);
        while at <= self.to && at < i64::MAX - step {
            if let Some(x) = self.column_of(at, plot) {
                let text = match self.zero {
                    Some(zero) => {
                        let since = u64::try_from(at.saturating_sub(zero)).unwrap_or(0);
                        mm_ss(since.saturating_mul(1000))
                    }
                    None if step < 60 => hms(at.saturating_mul(1000)),
                    None => hm(at.saturating_mul(1000)),
                };
                let wide = cells(width(&text));
                // A label begins at its moment, and none is cut.
                if x + wide <= plot.right() {
                    let words = pen.words().dim(text);
                    pen.put(
                        Rect {
                            x,
                            y: plot.bottom() + 1,
                            width: wide,
                            height: 1,
                        },
                        words,
                    );
                    let tick = pen.glyphs().down_tick;
                    let style = pen.style(Role::Axis);
                    pen.sign(x, plot.bottom(), tick, style);
                }
            }
            at += step;
        }
    }

    fn mark_lines(&self, pen: &mut Pen<'_>, plot: Rect) {
        let style = pen.style(Role::Mark);
        let sign = pen.glyphs().mark;
        for mark in self.marks {
            let top = if mark.minor {
                plot.bottom().saturating_sub(1)
            } else {
                plot.y
            };
            if let Some(x) = self.column_of(mark.at, plot) {
                for y in top..plot.bottom() {
                    pen.sign(x, y, sign, style);
                }
            }
        }
    }

    /// The cursor over the lines: where it stands is what is read.
    fn cursor_line(&self, pen: &mut Pen<'_>, plot: Rect) {
        let Some(x) = self.cursor.and_then(|at| self.column_of(at, plot)) else {
            return;
        };
        let (sign, style) = (pen.glyphs().axis, pen.style(Role::Accent));
        for y in plot.y..plot.bottom() {
            pen.sign(x, y, sign, style);
        }
    }

    /// Words of marks in the first rows, so that near ones do not cover each other; one that finds no room is left out. Minor ones come
    /// last.
    fn mark_words(&self, pen: &mut Pen<'_>, plot: Rect) {
        let rows = usize::from(6.min(plot.height));
        // Columns with words, from the first to behind the last, by row.
        let mut taken: Vec<Vec<(u16, u16)>> = vec![Vec::new(); rows];
        let (minor, major): (Vec<_>, Vec<_>) = self.marks.iter().partition(|mark| mark.minor);
        for mark in major.into_iter().chain(minor) {
            let Some(x) = self.column_of(mark.at, plot) else {
                continue;
            };
            let wide = cells(width(&mark.words));
            let start = if x + 1 + wide <= plot.right() {
                x + 1
            } else {
                x.saturating_sub(wide).max(plot.x)
            };
            let end = start + wide + 1;
            let free = |row: &[(u16, u16)]| row.iter().all(|(a, b)| end <= *a || *b <= start);
            // Over blanks where possible, else over the lines.
            let clear = taken
                .iter()
                .enumerate()
                .position(|(line, row)| free(row) && blank(pen, plot, cells(line), start, wide));
            let any = || taken.iter().take(3).position(|row| free(row));
            let Some(line) = clear.or_else(|| any().filter(|_| !mark.minor)) else {
                continue;
            };
            if let Some(row) = taken.get_mut(line) {
                row.push((start, end));
            }
            let at = Rect {
                x: start,
                y: plot.y + cells(line),
                width: wide.min(plot.right().saturating_sub(start)),
                height: 1,
            };
            let words = pen.words().styled(mark.style, mark.words.clone());
            pen.put(at, words);
        }
    }

    fn lines(&self, pen: &mut Pen<'_>, plot: Rect) {
        let mut dots = Dots::new(usize::from(plot.width), usize::from(plot.height));
        for (index, series) in (0..=u8::MAX).zip(self.series) {
            dots.spans(&series.spans, self.high, index);
        }
        dots.draw(pen, plot, &|series| {
            let one = self.series.get(usize::from(series));
            one.map_or((Style::new(), '*'), |one| (one.style, one.sign))
        });
    }

    /// The last value beside the end of its line; where lines end at one height the values stand one under the other.
    fn last_values(&self, pen: &mut Pen<'_>, area: Rect, plot: Rect) {
        let down = usize::from(plot.height) * DOWN;
        let mut wanted: Vec<(u16, &Series)> = self
            .series
            .iter()
            .filter(|one| !one.name.is_empty())
            .map(|one| {
                let y = one
                    .last_value
                    .map_or(down / 2, |value| dot_row(value, 0.0, self.high, down));
                (cells(y / DOWN), one)
            })
            .collect();
        wanted.sort_by_key(|(y, _)| *y);
        let count = cells(wanted.len());
        let mut next = 0;
        for (i, (y, series)) in (0u16..).zip(wanted) {
            let last_fit = plot.height.saturating_sub(count.saturating_sub(i));
            let y = y.min(last_fit).max(next);
            if y >= plot.height {
                break;
            }
            next = y + 1;
            let end = Rect {
                x: plot.right(),
                width: area.right().saturating_sub(plot.right()),
                ..row(from_row(plot, y), 0)
            };
            let none = pen.glyphs().none;
            let dot = pen.glyphs().dot;
            let words = pen
                .words()
                .styled(series.style, series.last.as_deref().unwrap_or(none))
                .gap(1)
                .styled(series.style, dot)
                .gap(1)
                .styled(series.style, series.name.clone());
            pen.put(from_column(end, 1), words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::widgets::paper::Paper;

    fn series(spans: Vec<Span>, last: Option<f64>) -> Series {
        Series {
            style: Style::new(),
            sign: '0',
            name: "0".into(),
            spans,
            last: last.map(|v| format!("{v:.1}")),
            last_value: last,
        }
    }

    fn chart(series: &[Series], marks: &[TimeMark]) -> Vec<String> {
        let mut paper = Paper::new(40, 9);
        let chart = TimeChart {
            from: 0,
            to: 60,
            zero: Some(0),
            cursor: None,
            high: 48.0,
            unit: "GiB",
            series,
            marks,
        };
        paper.draw(|pen, area| chart.draw(pen, area));
        paper.text()
    }

    #[test]
    fn an_unknown_span_is_a_gap_and_a_step_is_a_line() {
        let mut spans = vec![Some((48.0, 48.0)); 20];
        spans.extend(vec![None; 20]);
        spans.extend(vec![Some((0.0, 0.0)); 10]);
        spans.extend(vec![Some((48.0, 48.0)); 4]);
        let rows = chart(&[series(spans, Some(48.0))], &[]);
        assert_eq!(rows[1], "  48┤⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉               ⡏ 48.0 ● 0");
        assert_eq!(rows[3], "    │                         ⡇");
        assert_eq!(rows[6], "   0┤                    ⣀⣀⣀⣀⣀⠇");
    }

    #[test]
    fn minor_marks_take_no_room_from_others() {
        let mark = |at, words: &str, minor| TimeMark {
            at,
            words: words.into(),
            style: Style::new(),
            minor,
        };
        let marks = [
            mark(10, "start", false),
            mark(11, "loading weights", true),
            mark(12, "allocating KV pool", true),
            mark(13, "ready", false),
        ];
        let rows = chart(&[], &marks);
        let row = |words: &str| rows.iter().position(|row| row.contains(words));
        assert!(row("start").is_some() && row("ready").is_some(), "{rows:?}");
        assert!(row("start") < row("loading"), "{rows:?}");
        assert!(
            row("ready") < row("loading").or(Some(usize::MAX)),
            "{rows:?}"
        );
    }

    #[test]
    fn marks_have_words_and_near_ones_stand_one_under_the_other() {
        let mark = |at, words: &str| TimeMark {
            minor: false,
            at,
            words: words.into(),
            style: Style::new(),
        };
        let rows = chart(
            &[series(vec![Some((24.0, 24.0)); 54], Some(24.0))],
            &[
                mark(10, "stop"),
                mark(14, "start 65,536"),
                mark(99, "never"),
            ],
        );
        assert!(
            rows.iter().any(|row| row.contains("start 65,536")),
            "{rows:#?}"
        );
        assert!(rows.iter().any(|row| row.contains("stop")), "{rows:#?}");
        assert!(!rows.iter().any(|row| row.contains("never")), "{rows:#?}");
    }

    #[test]
    fn an_unknown_last_value_is_no_number() {
        let rows = chart(&[series(vec![None; 54], None)], &[]);
        assert!(rows.iter().any(|row| row.ends_with("– ● 0")), "{rows:#?}");
    }
}
