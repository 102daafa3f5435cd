//! Measured points over a logarithmic axis of lengths or levels, joined where they count.
//!
//! ```text
//! decode rate  tok/s
//!  75┤●⠤⠤⠤⠤⠤●⠤⠤⣀
//!    │           ●⡀
//!  65┤             ◌
//!    └──────────────◌──
//!     1K    10K  30K 60K
//! ```

use super::super::pen::{Pen, cells, first_columns, from_row, row};
use super::super::words::width;
use super::axis::{dot_row, label, round_range};
use super::dots::{ACROSS, DOWN, Dots};
use crate::theme::Role;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// How a point is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dot {
    /// It counts: filled, and joined with its neighbours.
    Counts,
    /// In doubt: hollow, joined.
    Doubt,
    /// Not measured, or void: hollow, on the axis, since it has no value.
    Missing,
    /// Still to be measured: it only has its place, so that the axis need not change.
    Ahead,
}

/// One point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct XyPoint {
    pub x: u64,
    /// Read only where there is one.
    pub y: Option<f64>,
    pub dot: Dot,
}

/// The chart.
#[derive(Debug)]
pub struct XyChart<'a> {
    pub title: &'a str,
    pub unit: &'a str,
    pub style: Style,
    /// The scale begins at zero.
    pub from_zero: bool,
    pub points: &'a [XyPoint],
    /// How a value of the horizontal axis is written.
    pub x_label: fn(u64) -> String,
}

impl XyChart<'_> {
    /// Draws into `area`: a title, the plot, the axis and its labels.
    pub fn draw(&self, pen: &mut Pen<'_>, area: Rect) {
        let title = pen.words().text(self.title).gap(2).dim(self.unit);
        pen.put(row(area, 0), title);
        let values: Vec<f64> = self.points.iter().filter_map(|p| p.y).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let low = if self.from_zero || values.is_empty() {
            0.0
        } else {
            low
        };
        let high = if values.is_empty() { 1.0 } else { high };
        let (low, high, ticks) = round_range(low, high, 2);
        let labels: Vec<String> = ticks.iter().map(|tick| label(*tick, &ticks)).collect();
        let gutter = cells(labels.iter().map(|text| width(text)).max().unwrap_or(1)) + 2;
        let plot = Rect {
            x: area.x.saturating_add(gutter),
            y: area.y.saturating_add(1),
            width: area.width.saturating_sub(gutter + 2),
            height: area.height.saturating_sub(3),
        };
        if plot.width < 6 || plot.height < 2 {
            return;
        }
        self.axes(pen, plot);
        if !values.is_empty() {
            let ends = [0, ticks.len().saturating_sub(1)];
            let all = usize::from(plot.height) >= 2 * ticks.len();
            for (i, (tick, text)) in ticks.iter().zip(labels).enumerate() {
                if !all && !ends.contains(&i) {
                    continue;
                }
                let y = cells(dot_row(*tick, low, high, usize::from(plot.height) * DOWN) / DOWN);
                self.tick(pen, plot, gutter, y, text);
            }
        }
        let places = self.places(plot);
        self.line(pen, plot, &places, low, high);
        self.signs(pen, plot, &places, low, high);
        self.x_labels(pen, area, plot, &places);
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

    /// The dot column of each point on a logarithmic axis from the least to the greatest.
    fn places(&self, plot: Rect) -> Vec<usize> {
        let log = |x: u64| (x.max(1) as f64).ln();
        let least = self
            .points
            .iter()
            .map(|p| log(p.x))
            .fold(f64::INFINITY, f64::min);
        let most = self
            .points
            .iter()
            .map(|p| log(p.x))
            .fold(f64::NEG_INFINITY, f64::max);
        let dots = (usize::from(plot.width) * ACROSS).saturating_sub(1);
        self.points
            .iter()
            .map(|point| {
                if most - least < 1e-9 {
                    return dots / 2;
                }
                let share = (log(point.x) - least) / (most - least);
                (share * dots as f64).round() as usize
            })
            .collect()
    }

    fn line(&self, pen: &mut Pen<'_>, plot: Rect, places: &[usize], low: f64, high: f64) {
        let mut dots = Dots::new(usize::from(plot.width), usize::from(plot.height));
        let (_, down) = dots.size();
        let mut before: Option<(usize, usize)> = None;
        for (point, x) in self.points.iter().zip(places) {
            let Some(y) = point.y.filter(|_| point.dot != Dot::Missing) else {
                continue;
            };
            let here = (*x, dot_row(y, low, high, down));
            if let Some(last) = before {
                dots.line(last, here, 0);
            }
            before = Some(here);
        }
        let style = self.style;
        dots.draw(pen, plot, &|_| (style, '.'));
    }

    fn signs(&self, pen: &mut Pen<'_>, plot: Rect, places: &[usize], low: f64, high: f64) {
        let glyphs = pen.glyphs();
        for (point, x) in self.points.iter().zip(places) {
            let x = plot.x + cells(x / ACROSS);
            if point.dot == Dot::Ahead {
                continue;
            }
            let value = point.y.filter(|_| point.dot != Dot::Missing);
            let (y, sign, style) = match value {
                Some(y) => {
                    let y = dot_row(y, low, high, usize::from(plot.height) * DOWN) / DOWN;
                    let sign = if point.dot == Dot::Counts {
                        glyphs.point
                    } else {
                        glyphs.hollow
                    };
                    (plot.y + cells(y), sign, self.style)
                }
                None => (plot.bottom(), glyphs.hollow, pen.style(Role::Dim)),
            };
            pen.sign(x, y, sign, style);
        }
    }

    /// Labels under their points, centred, from the ends inwards; one that finds no room is left out.
    fn x_labels(&self, pen: &mut Pen<'_>, area: Rect, plot: Rect, places: &[usize]) {
        let line = Rect {
            y: plot.bottom() + 1,
            height: 1,
            ..area
        };
        let mut taken: Vec<(u16, u16)> = Vec::new();
        let last = self.points.len().saturating_sub(1);
        let order = std::iter::once(0)
            .chain(std::iter::once(last))
            .chain(1..last);
        for index in order {
            let (Some(point), Some(place)) = (self.points.get(index), places.get(index)) else {
                continue;
            };
            let text = (self.x_label)(point.x);
            let wide = cells(width(&text));
            let centre = plot.x + cells(place / ACROSS);
            let start = centre
                .saturating_sub(wide / 2)
                .max(plot.x.saturating_sub(1))
                .min(area.right().saturating_sub(wide));
            let end = start + wide;
            if taken.iter().any(|(a, b)| start < *b + 1 && *a < end + 1) {
                continue;
            }
            taken.push((start, end));
            let words = pen.words().dim(text);
            pen.put(
                Rect {
                    x: start,
                    ..first_columns(line, wide)
                },
                words,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::widgets::paper::Paper;
    use crate::units::short_count;

    fn chart(points: &[XyPoint]) -> Vec<String> {
        let mut paper = Paper::new(40, 8);
        let chart = XyChart {
            title: "decode rate",
            unit: "tok/s",
            style: Style::new(),
            from_zero: false,
            points,
            x_label: short_count,
        };
        paper.draw(|pen, area| chart.draw(pen, area));
        paper.text()
    }

    fn point(x: u64, y: Option<f64>, dot: Dot) -> XyPoint {
        XyPoint { x, y, dot }
    }

    #[test]
    fn a_point_without_a_value_stands_on_the_axis() {
        let rows = chart(&[
            point(1_000, Some(73.6), Dot::Counts),
            point(10_000, Some(70.0), Dot::Doubt),
            point(100_000, None, Dot::Missing),
        ]);
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
        assert_eq!(
            rows[7].split_whitespace().collect::<Vec<_>>(),
            ["1K", "10K", "100K"]
        );
    }

    #[test]
    fn what_is_ahead_keeps_its_place_without_a_sign() {
        let ahead = chart(&[
            point(1, Some(70.0), Dot::Counts),
            point(100, None, Dot::Ahead),
        ]);
        assert!(!ahead.concat().contains('◌'), "{ahead:#?}");
        assert!(ahead[7].ends_with("100"), "{ahead:#?}");
        let nothing = chart(&[]);
        assert_eq!(nothing[0], "decode rate  tok/s");
    }
}
