//! Charts of measured points: speed and first token by level or length, and output rate against latency.

use super::super::pen::{Pen, first_columns, from_column, from_row, row};
use super::super::widgets::xy_chart::{Dot, XLabels, XyChart, XyPoint, XySeries};
use super::bench_live;
use crate::app::bench::View;
use crate::app::bench::series::place;
use crate::app::bench::view::{Line, lines};
use crate::app::model::Model;
use crate::bench::plan::{Arrivals, Cell, PlanKind};
use crate::bench::point::{Point, Validity};
use crate::bench::saturation::knee;
use crate::theme::Role;
use crate::units::short_count;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Cells from which on two charts stand side by side.
const TWO: u16 = 70;
/// Rows from which on a second view stands under the first.
const SECOND: u16 = 22;
/// Hues of several lines on one chart.
const HUES: [Role; 4] = [Role::Decode, Role::Ttft, Role::Rate, Role::Accent];

/// Draws the view that is chosen, and in a tall place the next one under it.
pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model, kind: PlanKind) {
    let view = model.bench.shown();
    let next = model.bench.after(view);
    if area.height < SECOND || next == view {
        return one(pen, area, model, view, kind);
    }
    let half = area.height / 2;
    one(
        pen,
        Rect {
            height: half,
            ..area
        },
        model,
        view,
        kind,
    );
    one(pen, from_row(area, half), model, next, kind);
}

fn one(pen: &mut Pen<'_>, area: Rect, model: &Model, view: View, kind: PlanKind) {
    match view {
        View::Live => bench_live::draw(pen, area, model),
        View::Curves => curves(pen, area, model, kind),
        View::Latency => latency(pen, area, model),
    }
}

/// The names of several lines, each with its sign; gives what is left of `area`.
fn legend(pen: &mut Pen<'_>, area: Rect, lines: &[Line<'_>]) -> Rect {
    if lines.len() < 2 {
        return area;
    }
    let shown = HUES.len();
    let names = lines.iter().take(shown).enumerate().map(|(i, line)| {
        pen.words()
            .styled(hue(pen, lines, i, Role::Decode), sign(pen, i))
            .gap(1)
            .text(line.name.clone())
    });
    let mut words = pen.words().join(names.collect::<Vec<_>>(), 3);
    if lines.len() > shown {
        words = words.gap(3).dim(format!(
            "{} older ones only in the table",
            lines.len() - shown
        ));
    }
    pen.put(row(area, 0), words);
    from_row(area, 1)
}

fn sign(pen: &Pen<'_>, index: usize) -> &'static str {
    let glyphs = pen.glyphs();
    glyphs.series.get(index).copied().unwrap_or(glyphs.point)
}

/// A lone line has the hue of what it shows; several have one each.
fn hue(pen: &Pen<'_>, lines: &[Line<'_>], index: usize, lone: Role) -> Style {
    if lines.len() < 2 {
        return pen.style(lone);
    }
    pen.style(HUES.get(index).copied().unwrap_or(Role::Dim))
}

fn halves(area: Rect) -> (Rect, Option<Rect>) {
    if area.width < TWO {
        return (area, None);
    }
    let half = area.width / 2;
    (
        first_columns(area, half.saturating_sub(1)),
        Some(from_column(area, half + 1)),
    )
}

fn curves(pen: &mut Pen<'_>, area: Rect, model: &Model, kind: PlanKind) {
    let (lines, up_to) = lines(model, kind);
    let area = legend(pen, area, &lines);
    let speed: fn(&Point) -> Option<f64> = match kind {
        PlanKind::LongContext => |p| p.decode_tok_s,
        PlanKind::Throughput => Point::offered_output,
    };
    let open = |line: &Line<'_>| {
        line.points
            .iter()
            .any(|p| p.cell.arrivals != Arrivals::Closed)
    };
    let by = match kind {
        PlanKind::LongContext => "input length",
        PlanKind::Throughput if lines.iter().any(open) => "rate",
        PlanKind::Throughput => "concurrency",
    };
    let by = match up_to {
        Some(last) => format!("by {by} up to {}", name(last)),
        None => format!("by {by}"),
    };
    let (what, role) = match kind {
        PlanKind::LongContext => ("decode rate", Role::Decode),
        PlanKind::Throughput => ("output rate", Role::Rate),
    };
    let ahead = ahead(model, kind, &lines, up_to);
    let (left, right) = halves(area);
    let build = |value: fn(&Point) -> Option<f64>, lone: Role| -> Vec<XySeries> {
        let mut all: Vec<XySeries> = (lines.iter().take(HUES.len()).enumerate())
            .map(|(i, line)| XySeries {
                style: hue(pen, &lines, i, lone),
                sign: sign(pen, i),
                points: line.points.iter().map(|p| curve_point(p, value)).collect(),
            })
            .collect();
        if !ahead.is_empty() {
            all.push(XySeries {
                style: pen.style(Role::Dim),
                sign: pen.glyphs().point,
                points: ahead.clone(),
            });
        }
        all
    };
    let speeds = build(speed, role);
    let firsts = build(|p| p.ttft_ms.p50.map(|ms| ms / 1000.0), Role::Ttft);
    XyChart {
        title: &format!("{what} {by}"),
        unit: "tok/s",
        from_zero: kind == PlanKind::Throughput,
        series: &speeds,
        x: XLabels::Places(name),
    }
    .draw(pen, left);
    if let Some(right) = right {
        XyChart {
            title: &format!("time to first token {by}"),
            unit: "s",
            from_zero: true,
            series: &firsts,
            x: XLabels::Places(name),
        }
        .draw(pen, right);
    }
}

/// A place on the axis of levels, rates or lengths.
fn name(x: f64) -> String {
    if x.fract().abs() < 1e-9 {
        short_count(x as u64)
    } else {
        format!("{x:.1}")
    }
}

fn dot(point: &Point, y: Option<f64>) -> (Option<f64>, Dot) {
    match (point.validity, y.filter(|y| y.is_finite())) {
        (Validity::Valid, Some(y)) => (Some(y), Dot::Counts),
        (Validity::Suspect, Some(y)) => (Some(y), Dot::Doubt),
        _ => (None, Dot::Missing),
    }
}

fn curve_point(point: &Point, value: fn(&Point) -> Option<f64>) -> XyPoint {
    let (y, dot) = dot(point, value(point));
    XyPoint {
        x: place(&point.cell),
        y,
        dot,
        label: None,
    }
}

/// The places of what the run will still measure, and of what is blocked.
fn ahead(model: &Model, kind: PlanKind, lines: &[Line<'_>], up_to: Option<f64>) -> Vec<XyPoint> {
    if model.bench.compared.is_some() || up_to.is_some() {
        return Vec::new();
    }
    let run = model.bench.run.as_ref().filter(|run| run.plan.kind == kind);
    let cells = run.into_iter().flat_map(|run| run.cells.iter());
    let mut all: Vec<(&Cell, Dot)> = cells.map(|cell| (cell, Dot::Ahead)).collect();
    if kind == PlanKind::LongContext {
        let blocked = model.bench.blocked.iter();
        all.extend(blocked.map(|one| (&one.cell, Dot::Missing)));
    }
    let measured = |x: f64| {
        let mut places = lines.iter().flat_map(|line| line.points.iter());
        places.any(|p| place(&p.cell).total_cmp(&x).is_eq())
    };
    all.into_iter()
        .map(|(cell, dot)| (place(cell), dot))
        .filter(|(x, _)| !measured(*x))
        .map(|(x, dot)| XyPoint {
            x,
            y: None,
            dot,
            label: None,
        })
        .collect()
}

/// Output rate against time to first token and against time per token, a point a level, with the knee. Void points have no place.
fn latency(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    let (lines, up_to) = lines(model, PlanKind::Throughput);
    let area = legend(pen, area, &lines);
    let up_to = up_to.map_or(String::new(), |last| format!(" up to C={}", name(last)));
    let (left, right) = halves(area);
    let build = |latency: fn(&Point) -> Option<f64>| -> Vec<XySeries> {
        (lines.iter().take(HUES.len()).enumerate())
            .map(|(i, line)| XySeries {
                style: hue(pen, &lines, i, Role::Rate),
                sign: sign(pen, i),
                points: tradeoff(line, latency),
            })
            .collect()
    };
    let by_ttft = build(|p| p.ttft_ms.p50.map(|ms| ms / 1000.0));
    let by_tpot = build(|p| p.tpot_ms.p50);
    XyChart {
        title: &format!("output by time to first token{up_to}"),
        unit: "tok/s",
        from_zero: true,
        series: &by_ttft,
        x: XLabels::Round("s"),
    }
    .draw(pen, left);
    if let Some(right) = right {
        XyChart {
            title: &format!("output by time per token{up_to}"),
            unit: "tok/s",
            from_zero: true,
            series: &by_tpot,
            x: XLabels::Round("ms"),
        }
        .draw(pen, right);
    }
}

fn tradeoff(line: &Line<'_>, latency: fn(&Point) -> Option<f64>) -> Vec<XyPoint> {
    let own: Vec<Point> = line.points.iter().map(|p| (*p).clone()).collect();
    let knee = knee(&own).map(|knee| knee.concurrency);
    line.points
        .iter()
        .filter_map(|point| {
            let x = latency(point).filter(|x| x.is_finite() && *x > 0.0)?;
            let (y, dot) = dot(point, point.offered_output());
            let level = name(place(&point.cell));
            let at_knee = knee == Some(point.cell.concurrency);
            Some(XyPoint {
                x,
                y: Some(y?),
                // One in doubt stays hollow; its label names it all the same.
                dot: if at_knee && dot == Dot::Counts {
                    Dot::Knee
                } else {
                    dot
                },
                label: Some(if at_knee {
                    format!("{level} knee")
                } else {
                    level
                }),
            })
        })
        .collect()
}
