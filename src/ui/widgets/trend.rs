//! A figure over the time of a run, small: its scale, its line, its last value.
//!
//! ```text
//! output  tok/s
//! 600┤        ⣀⡠⠤⠒⠉
//!    │   ⣀⠤⠒⠉⠁       504.8
//!   0┤⠤⠒⠉
//!    └─────────────
//!    00:00      06:41
//! ```

use super::super::pen::{Pen, cells, first_columns, from_row, row};
use super::super::words::{Words, width};
use super::axis::{dot_row, label, round_range};
use super::dots::{ACROSS, DOWN, Dots};
use crate::theme::Role;
use crate::units::mm_ss;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Least and most in a column of dots; `None` where it is unknown.
type Span = Option<(f64, f64)>;

/// One line.
pub struct TrendLine<'a> {
    pub style: Style,
    /// Its spans in so many columns of dots.
    pub spans: &'a dyn Fn(usize) -> Vec<Span>,
    /// The newest value, and how it is written.
    pub last: Option<(f64, String)>,
}

/// The chart.
pub struct Trend<'a> {
    pub title: Words<'a>,
    /// Milliseconds of the run at both ends.
    pub from_ms: u64,
    pub to_ms: u64,
    /// The greatest value; the scale begins at zero.
    pub high: f64,
    pub lines: Vec<TrendLine<'a>>,
}

impl Trend<'_> {
    /// Draws into `area`.
    pub fn draw(self, pen: &mut Pen<'_>, area: Rect) {
        pen.put(row(area, 0), self.title.clone());
        let (_, high, ticks) = round_range(0.0, self.high.max(f64::MIN_POSITIVE), 2);
        let labels: Vec<String> = ticks.iter().map(|tick| label(*tick, &ticks)).collect();
        let left = cells(labels.iter().map(|text| width(text)).max().unwrap_or(1)) + 1;
        let lasts = self.lines.iter().filter_map(|line| line.last.as_ref());
        let right = cells(lasts.map(|(_, text)| width(text)).max().unwrap_or(0)) + 1;
        let plot = Rect {
            x: area.x.saturating_add(left),
            y: area.y.saturating_add(1),
            width: area.width.saturating_sub(left + right),
            height: area.height.saturating_sub(3),
        };
        if plot.width < 6 || plot.height < 2 {
            return;
        }
        self.axes(pen, plot);
        let outer = [0, ticks.len().saturating_sub(1)];
        let all = usize::from(plot.height) >= 2 * ticks.len();
        let down = usize::from(plot.height) * DOWN;
        for (i, (tick, text)) in ticks.iter().zip(labels).enumerate() {
            if !all && !outer.contains(&i) {
                continue;
            }
            let y = cells(dot_row(*tick, 0.0, high, down) / DOWN);
            let at = Rect {
                x: area.x,
                width: left - 1,
                ..row(from_row(plot, y), 0)
            };
            let words = pen.words().dim(text);
            pen.put_right(at, words);
            let (sign, axis) = (pen.glyphs().tick, pen.style(Role::Axis));
            pen.sign(plot.x - 1, at.y, sign, axis);
        }
        let mut dots = Dots::new(usize::from(plot.width), usize::from(plot.height));
        for (index, line) in (0..=u8::MAX).zip(&self.lines) {
            let spans = (line.spans)(usize::from(plot.width) * ACROSS);
            dots.spans(&spans, high, index);
        }
        dots.draw(pen, plot, &|series| {
            let line = self.lines.get(usize::from(series));
            let style = line.map_or(Style::new(), |line| line.style);
            (style, if series == 0 { '.' } else { '-' })
        });
        self.lasts(pen, area, plot, high);
    }

    fn axes(&self, pen: &mut Pen<'_>, plot: Rect) {
        let axis = pen.style(Role::Axis);
        let glyphs = pen.glyphs();
        for y in plot.y..plot.bottom() {
            pen.sign(plot.x - 1, y, glyphs.axis, axis);
        }
        pen.sign(plot.x - 1, plot.bottom(), glyphs.corner, axis);
        for x in plot.x..plot.right() {
            pen.sign(x, plot.bottom(), glyphs.base, axis);
        }
        let times = Rect {
            y: plot.bottom() + 1,
            height: 1,
            ..plot
        };
        let to = pen.words().dim(mm_ss(self.to_ms));
        let used = pen.put_right(times, to);
        let room = first_columns(times, times.width.saturating_sub(used + 1));
        let from = pen.words().dim(mm_ss(self.from_ms));
        if cells(from.width()) <= room.width {
            pen.put(room, from);
        }
    }

    /// The last values at the right, at their heights; one under the other where these are the same.
    fn lasts(&self, pen: &mut Pen<'_>, area: Rect, plot: Rect, high: f64) {
        let down = usize::from(plot.height) * DOWN;
        let mut ends: Vec<(u16, &String, Style)> = self
            .lines
            .iter()
            .filter_map(|line| {
                let (value, text) = line.last.as_ref()?;
                let y = cells(dot_row(*value, 0.0, high, down) / DOWN);
                Some((y, text, line.style))
            })
            .collect();
        ends.sort_by_key(|(y, ..)| *y);
        let count = cells(ends.len());
        let mut next = 0;
        for (i, (y, text, style)) in (0u16..).zip(ends) {
            let y = y
                .min(plot.height.saturating_sub(count.saturating_sub(i)))
                .max(next);
            if y >= plot.height {
                break;
            }
            next = y + 1;
            let place = Rect {
                x: plot.right() + 1,
                width: area.right().saturating_sub(plot.right() + 1),
                ..row(from_row(plot, y), 0)
            };
            let words = pen.words().styled(style, text.clone());
            pen.put(place, words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::widgets::paper::Paper;

    fn rows(wide: u16, lines: Vec<TrendLine<'_>>) -> Vec<String> {
        let mut paper = Paper::new(wide, 8);
        paper.draw(|pen, area| {
            let trend = Trend {
                title: pen.words().text("requests"),
                from_ms: 0,
                to_ms: 401_000,
                high: 100.0,
                lines,
            };
            trend.draw(pen, area);
        });
        paper.text()
    }

    #[test]
    fn two_lines_end_with_their_values_and_the_axis_with_the_time() {
        let asked = |n: usize| vec![Some((100.0, 100.0)); n];
        let seen = |n: usize| vec![Some((48.0, 48.0)); n];
        let line = |spans, last: f64, text: &str| TrendLine {
            style: Style::new(),
            spans,
            last: Some((last, text.to_string())),
        };
        let rows = rows(
            32,
            vec![
                line(&asked, 100.0, "100 asked"),
                line(&seen, 48.0, "48 seen"),
            ],
        );
        assert_eq!(rows[0], "requests");
        assert!(
            rows[1].starts_with("100┤") && rows[1].ends_with("100 asked"),
            "{rows:#?}"
        );
        assert!(rows.iter().any(|row| row.ends_with("48 seen")), "{rows:#?}");
        assert!(
            rows[7].contains("00:00") && rows[7].contains("06:41"),
            "{rows:#?}"
        );
    }

    #[test]
    fn what_is_unknown_is_no_line_and_no_zero() {
        let nothing = |n: usize| vec![None; n];
        let rows = rows(
            32,
            vec![TrendLine {
                style: Style::new(),
                spans: &nothing,
                last: None,
            }],
        );
        let drawn = |c: char| ('\u{2801}'..='\u{28ff}').contains(&c);
        assert!(!rows.concat().contains(drawn), "{rows:#?}");
    }
}
