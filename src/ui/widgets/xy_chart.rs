//! Measured points of one or more series over a logarithmic axis, joined where they count.
//!
//! ```text
//! decode rate  tok/s
//!  75┤●⠤⠤⠤⠤⠤●⠤⠤⣀
//!    │           ●⡀ 69.3
//!  65┤             ◌
//!    └──────────────◌──
//!     1K    10K  30K 60K
//! ```

use super::super::pen::{Pen, cells, first_columns, from_row, row};
use super::super::words::width;
use super::axis::{decades, dot_row, label, round_range};
use super::dots::{ACROSS, DOWN, Dots};
use crate::theme::Role;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// How a point is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dot {
    /// It counts: filled, and joined with its neighbours.
    Counts,
    /// The same, and the one to look at.
    Knee,
    /// In doubt: hollow, joined.
    Doubt,
    /// Not measured, or void: hollow, on the axis, since it has no value.
    Missing,
    /// Still to be measured: it only has its place, so that the axis need not change.
    Ahead,
}

/// One point.
#[derive(Debug, Clone, PartialEq)]
pub struct XyPoint {
    pub x: f64,
    /// Read only where there is one.
    pub y: Option<f64>,
    pub dot: Dot,
    /// Stands beside it, where there is room.
    pub label: Option<String>,
}

/// One line of points.
#[derive(Debug)]
pub struct XySeries {
    pub style: Style,
    /// The sign of a point that counts.
    pub sign: &'static str,
    pub points: Vec<XyPoint>,
}

/// How the horizontal axis is written.
#[derive(Debug, Clone, Copy)]
pub enum XLabels {
    /// Every place of a point, in this form.
    Places(fn(f64) -> String),
    /// Round numbers, and the unit.
    Round(&'static str),
}

/// The chart.
#[derive(Debug)]
pub struct XyChart<'a> {
    pub title: &'a str,
    pub unit: &'a str,
    /// The scale begins at zero.
    pub from_zero: bool,
    pub series: &'a [XySeries],
    pub x: XLabels,
}

/// The least and the greatest of some numbers.
fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |so_far, v| {
        let (low, high) = so_far.unwrap_or((v, v));
        Some((low.min(v), high.max(v)))
    })
}

fn log(x: f64) -> f64 {
    x.max(1e-9).ln()
}

/// A scale along the plot: dots, and the numbers at its ends.
#[derive(Debug, Clone, Copy)]
struct Scale {
    low: f64,
    high: f64,
    dots: usize,
}

impl Scale {
    /// The dot column of `x` on a logarithmic axis.
    fn column(self, x: f64) -> usize {
        let (least, most) = (log(self.low), log(self.high));
        let last = self.dots.saturating_sub(1);
        if most - least < 1e-9 {
            return last / 2;
        }
        let share = ((log(x) - least) / (most - least)).clamp(0.0, 1.0);
        (share * last as f64).round() as usize
    }

    /// The dot row of `y`.
    fn row(self, y: f64) -> usize {
        dot_row(y, self.low, self.high, self.dots)
    }
}

impl XyChart<'_> {
    fn points(&self) -> impl Iterator<Item = &XyPoint> {
        self.series.iter().flat_map(|one| one.points.iter())
    }

    /// Draws into `area`: a title, the plot, the axis and its labels.
    pub fn draw(&self, pen: &mut Pen<'_>, area: Rect) {
        let title = pen.words().text(self.title).gap(2).dim(self.unit);
        pen.put(row(area, 0), title);
        let values = extent(self.points().filter_map(|p| p.y));
        let (low, high) = values.unwrap_or((0.0, 1.0));
        let low = if self.from_zero { low.min(0.0) } else { low };
        let (low, high, ticks) = round_range(low, high, 2);
        let labels: Vec<String> = ticks.iter().map(|tick| label(*tick, &ticks)).collect();
        let gutter = cells(labels.iter().map(|text| width(text)).max().unwrap_or(1)) + 2;
        let ends = self.ends();
        let right = cells(ends.iter().map(|(text, ..)| width(text)).max().unwrap_or(0)) + 2;
        let plot = Rect {
            x: area.x.saturating_add(gutter),
            y: area.y.saturating_add(1),
            width: area.width.saturating_sub(gutter + right),
            height: area.height.saturating_sub(3),
        };
        if plot.width < 6 || plot.height < 2 {
            return;
        }
        let (left, last) = extent(self.points().map(|p| p.x)).unwrap_or((1.0, 1.0));
        let across = Scale {
            low: left,
            high: last,
            dots: usize::from(plot.width) * ACROSS,
        };
        let up = Scale {
            low,
            high,
            dots: usize::from(plot.height) * DOWN,
        };
        self.axes(pen, plot);
        if values.is_some() {
            let outer = [0, ticks.len().saturating_sub(1)];
            let all = usize::from(plot.height) >= 2 * ticks.len();
            for (i, (tick, text)) in ticks.iter().zip(labels).enumerate() {
                if all || outer.contains(&i) {
                    self.tick(pen, plot, gutter, cells(up.row(*tick) / DOWN), text);
                }
            }
        }
        self.lines(pen, plot, across, up);
        for one in self.series.iter().rev() {
            self.signs(pen, plot, one, across, up);
        }
        for one in self.series {
            self.labels(pen, plot, one, across, up);
        }
        self.last_values(pen, area, plot, ends, up);
        match self.x {
            XLabels::Places(words) => self.places(pen, area, plot, across, words),
            XLabels::Round(unit) => self.round(pen, area, plot, across, unit),
        }
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
    }

    fn tick(&self, pen: &mut Pen<'_>, plot: Rect, gutter: u16, y: u16, text: String) {
        let at = Rect {
            x: plot.x.saturating_sub(gutter),
            width: gutter - 1,
            ..row(from_row(plot, y), 0)
        };
        let words = pen.words().dim(text);
        pen.put_right(at, words);
        let (sign, axis) = (pen.glyphs().tick, pen.style(Role::Axis));
        pen.sign(plot.x - 1, at.y, sign, axis);
    }

    fn lines(&self, pen: &mut Pen<'_>, plot: Rect, across: Scale, up: Scale) {
        let mut dots = Dots::new(usize::from(plot.width), usize::from(plot.height));
        for (index, one) in (0..=u8::MAX).zip(self.series) {
            let mut before: Option<(usize, usize)> = None;
            for point in &one.points {
                let Some(y) = value(point) else {
                    continue;
                };
                let here = (across.column(point.x), up.row(y));
                if let Some(last) = before {
                    dots.line(last, here, index);
                }
                before = Some(here);
            }
        }
        dots.draw(pen, plot, &|series| {
            let one = self.series.get(usize::from(series));
            (one.map_or(Style::new(), |one| one.style), '.')
        });
    }

    fn signs(&self, pen: &mut Pen<'_>, plot: Rect, one: &XySeries, across: Scale, up: Scale) {
        let glyphs = pen.glyphs();
        for point in one.points.iter().filter(|p| p.dot != Dot::Ahead) {
            let x = plot.x + cells(across.column(point.x) / ACROSS);
            let (y, sign, style) = match value(point) {
                Some(y) => {
                    let sign = match point.dot {
                        Dot::Counts => one.sign,
                        Dot::Knee => glyphs.knee,
                        _ => glyphs.hollow,
                    };
                    (plot.y + cells(up.row(y) / DOWN), sign, one.style)
                }
                None => (plot.bottom(), glyphs.hollow, pen.style(Role::Dim)),
            };
            pen.sign(x, y, sign, style);
        }
    }

    /// What stands beside points: at the first of some places that is blank.
    fn labels(&self, pen: &mut Pen<'_>, plot: Rect, one: &XySeries, across: Scale, up: Scale) {
        for point in &one.points {
            let (Some(y), Some(text)) = (value(point), &point.label) else {
                continue;
            };
            let wide = cells(width(text));
            let x = plot.x + cells(across.column(point.x) / ACROSS);
            let y = plot.y + cells(up.row(y) / DOWN);
            let centre = x.saturating_sub(wide / 2);
            let places = [
                (centre, y.checked_sub(1)),
                (x.saturating_sub(wide), y.checked_sub(1)),
                (x + 2, Some(y)),
                (centre, y.checked_add(1)),
                (x + 1, y.checked_add(1)),
                (x.saturating_sub(wide + 1), Some(y)),
            ];
            let free = places.into_iter().find_map(|(x, y)| {
                let y = y?;
                let inside = x >= plot.x && x + wide <= plot.right() + 1;
                let in_rows = y >= plot.y && y < plot.bottom();
                (inside && in_rows && blank(pen, x, y, wide)).then_some((x, y))
            });
            if let Some((x, y)) = free {
                let role = if point.dot == Dot::Knee {
                    Role::Strong
                } else {
                    Role::Dim
                };
                let words = pen.words().role(role, text.clone());
                let place = Rect {
                    x,
                    y,
                    width: wide,
                    height: 1,
                };
                pen.put(place, words);
            }
        }
    }

    /// The last value of each series; where points have labels they say enough.
    fn ends(&self) -> Vec<(String, f64, Style)> {
        if self.points().any(|p| p.label.is_some()) {
            return Vec::new();
        }
        let last = |one: &XySeries| {
            let y = one.points.iter().rev().find_map(value)?;
            let text = if y.abs() < 10.0 {
                format!("{y:.2}")
            } else if y.abs() < 1e6 {
                format!("{y:.1}")
            } else {
                format!("{y:.1e}")
            };
            Some((text, y, one.style))
        };
        self.series.iter().filter_map(last).collect()
    }

    /// The last values at the right, at their heights; one under the other where these are the same.
    fn last_values(
        &self,
        pen: &mut Pen<'_>,
        area: Rect,
        plot: Rect,
        mut ends: Vec<(String, f64, Style)>,
        up: Scale,
    ) {
        ends.sort_by_key(|(_, y, _)| up.row(*y));
        let count = cells(ends.len());
        let mut next = 0;
        for (i, (text, y, style)) in (0u16..).zip(ends) {
            let last_fit = plot.height.saturating_sub(count.saturating_sub(i));
            let y = cells(up.row(y) / DOWN).min(last_fit).max(next);
            if y >= plot.height {
                break;
            }
            next = y + 1;
            let place = Rect {
                x: plot.right() + 1,
                width: area.right().saturating_sub(plot.right() + 1),
                ..row(from_row(plot, y), 0)
            };
            let words = pen.words().styled(style, text);
            pen.put(place, words);
        }
    }

    /// Labels under the places of points, centred, from the ends inwards; one that finds no room is left out.
    fn places(
        &self,
        pen: &mut Pen<'_>,
        area: Rect,
        plot: Rect,
        across: Scale,
        words: fn(f64) -> String,
    ) {
        let mut all: Vec<f64> = self.points().map(|p| p.x).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        let last = all.len().saturating_sub(1);
        let order = std::iter::once(0)
            .chain(std::iter::once(last))
            .chain(1..last);
        let mut taken = Vec::new();
        for x in order.filter_map(|at| all.get(at)) {
            let centre = plot.x + cells(across.column(*x) / ACROSS);
            self.under(pen, area, plot, centre, words(*x), &mut taken);
        }
    }

    /// Round numbers along the axis, and the unit at its end.
    fn round(&self, pen: &mut Pen<'_>, area: Rect, plot: Rect, across: Scale, unit: &str) {
        let mut taken = Vec::new();
        let wide = cells(width(unit));
        let end = area.right().saturating_sub(wide);
        self.under(pen, area, plot, end + wide / 2, unit.into(), &mut taken);
        for tick in decades(across.low, across.high) {
            let x = plot.x + cells(across.column(tick) / ACROSS);
            let text = if tick < 1.0 {
                format!("{tick}")
            } else {
                format!("{tick:.0}")
            };
            if self.under(pen, area, plot, x, text, &mut taken) {
                let (sign, style) = (pen.glyphs().down_tick, pen.style(Role::Axis));
                let free = pen.buf.cell((x, plot.bottom()));
                if free.is_some_and(|cell| cell.symbol() == pen.glyphs().base) {
                    pen.sign(x, plot.bottom(), sign, style);
                }
            }
        }
    }

    /// One label under the axis, if nothing is there. Gives whether it stands.
    fn under(
        &self,
        pen: &mut Pen<'_>,
        area: Rect,
        plot: Rect,
        centre: u16,
        text: String,
        taken: &mut Vec<(u16, u16)>,
    ) -> bool {
        let wide = cells(width(&text));
        let start = centre
            .saturating_sub(wide / 2)
            .max(plot.x.saturating_sub(1))
            .min(area.right().saturating_sub(wide));
        let end = start + wide;
        if taken.iter().any(|(a, b)| start < *b + 1 && *a < end + 1) {
            return false;
        }
        taken.push((start, end));
        let line = Rect {
            x: start,
            y: plot.bottom() + 1,
            height: 1,
            ..area
        };
        let words = pen.words().dim(text);
        pen.put(first_columns(line, wide), words);
        true
    }
}

/// The value of a point that is drawn at it.
fn value(point: &XyPoint) -> Option<f64> {
    let there = !matches!(point.dot, Dot::Missing | Dot::Ahead);
    point.y.filter(|_| there)
}

/// Whether nothing is written there, nor right beside it.
fn blank(pen: &Pen<'_>, x: u16, y: u16, wide: u16) -> bool {
    (x.saturating_sub(1)..x + wide + 1).all(|x| {
        let cell = pen.buf.cell((x, y));
        let symbol = cell.map_or(" ", |cell| cell.symbol());
        symbol == " " || symbol == pen.glyphs().axis || symbol == pen.glyphs().tick
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::widgets::paper::Paper;
    use crate::units::short_count;

    fn chart(all: Vec<Vec<XyPoint>>, x: XLabels) -> Vec<String> {
        let mut paper = Paper::new(40, 8);
        let signs = ["●", "■"];
        let series: Vec<XySeries> = all
            .into_iter()
            .zip(signs)
            .map(|(points, sign)| XySeries {
                style: Style::new(),
                sign,
                points,
            })
            .collect();
        let chart = XyChart {
            title: "decode rate",
            unit: "tok/s",
            from_zero: false,
            series: &series,
            x,
        };
        paper.draw(|pen, area| chart.draw(pen, area));
        paper.text()
    }

    const LENGTHS: XLabels = XLabels::Places(|x| short_count(x as u64));

    fn point(x: f64, y: Option<f64>, dot: Dot) -> XyPoint {
        XyPoint {
            x,
            y,
            dot,
            label: None,
        }
    }

    #[test]
    fn a_point_without_a_value_stands_on_the_axis() {
        let rows = chart(
            vec![vec![
                point(1_000.0, Some(73.6), Dot::Counts),
                point(10_000.0, Some(70.0), Dot::Doubt),
                point(100_000.0, None, Dot::Missing),
            ]],
            LENGTHS,
        );
        assert_eq!(rows[0], "decode rate  tok/s");
        assert!(rows[1].starts_with(" 74┤●"), "{rows:#?}");
        assert_eq!(
            rows[6].matches('◌').count(),
            1,
            "the missing one is on the axis: {rows:#?}"
        );
        assert_eq!(
            rows[1..6].concat().matches('◌').count(),
            1,
            "the doubt has its value: {rows:#?}"
        );
        assert!(rows[5].ends_with(" 70.0"), "the last value: {rows:#?}");
        assert_eq!(
            rows[7].split_whitespace().collect::<Vec<_>>(),
            ["1K", "10K", "100K"]
        );
    }

    #[test]
    fn what_is_ahead_keeps_its_place_without_a_sign() {
        let ahead = chart(
            vec![vec![
                point(1.0, Some(70.0), Dot::Counts),
                point(100.0, None, Dot::Ahead),
            ]],
            LENGTHS,
        );
        assert!(!ahead.concat().contains('◌'), "{ahead:#?}");
        assert!(ahead[7].ends_with("100"), "{ahead:#?}");
        let nothing = chart(vec![], LENGTHS);
        assert_eq!(nothing[0], "decode rate  tok/s");
    }

    #[test]
    fn two_series_have_their_own_signs_and_last_values() {
        let line = |y: f64| {
            vec![
                point(1.0, Some(y), Dot::Counts),
                point(100.0, Some(y - 4.0), Dot::Counts),
            ]
        };
        let rows = chart(vec![line(80.0), line(70.0)], LENGTHS);
        let all = rows[1..6].concat();
        assert_eq!(all.matches('●').count(), 2, "{rows:#?}");
        assert_eq!(all.matches('■').count(), 2, "{rows:#?}");
        assert!(all.contains("76.0") && all.contains("66.0"), "{rows:#?}");
    }

    #[test]
    fn points_are_called_by_their_labels_and_the_axis_is_round() {
        let named = |x: f64, y: f64, dot, label: &str| XyPoint {
            label: Some(label.into()),
            ..point(x, Some(y), dot)
        };
        let rows = chart(
            vec![vec![
                named(0.16, 73.5, Dot::Counts, "1"),
                named(0.73, 430.0, Dot::Knee, "16 knee"),
                named(12.4, 503.9, Dot::Counts, "100"),
            ]],
            XLabels::Round("s"),
        );
        let all = rows[1..6].concat();
        assert!(all.contains("16 knee") && all.contains('◆'), "{rows:#?}");
        assert!(all.contains("100"), "{rows:#?}");
        assert!(
            rows[7].contains("0.2") && rows[7].contains("10") && rows[7].ends_with('s'),
            "{rows:#?}"
        );
    }
}
