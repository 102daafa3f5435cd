//! The two charts of a plan.

use super::super::pen::{Pen, first_columns, from_column};
use super::super::widgets::xy_chart::{Dot, XyChart, XyPoint};
use crate::app::model::Model;
use crate::bench::plan::{Cell, PlanKind};
use crate::bench::point::{Point, Validity};
use crate::theme::Role;
use crate::units::short_count;
use ratatui::layout::Rect;

/// Cells from which on two charts stand side by side.
const TWO: u16 = 70;

/// Draws the charts of a kind of plan over its points.
pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model, kind: PlanKind) {
    let speed: fn(&Point) -> Option<f64> = match kind {
        PlanKind::LongContext => |p| p.decode_tok_s,
        PlanKind::Throughput => Point::offered_output,
    };
    let speed_points = points(model, kind, speed);
    let ttft_points = points(model, kind, |p| p.ttft_ms.p50.map(|ms| ms / 1000.0));
    let (title, ttft_title) = match kind {
        PlanKind::LongContext => (
            "decode rate by input length",
            "time to first token by input length",
        ),
        PlanKind::Throughput => (
            "output rate by concurrency",
            "time to first token by concurrency",
        ),
    };
    let speed_chart = XyChart {
        title,
        unit: "tok/s",
        style: pen.style(if kind == PlanKind::LongContext {
            Role::Decode
        } else {
            Role::Rate
        }),
        from_zero: kind == PlanKind::Throughput,
        points: &speed_points,
        x_label: short_count,
    };
    let ttft_chart = XyChart {
        title: ttft_title,
        unit: "s",
        style: pen.style(Role::Ttft),
        from_zero: true,
        points: &ttft_points,
        x_label: short_count,
    };
    if area.width < TWO {
        speed_chart.draw(pen, area);
        return;
    }
    let half = area.width / 2;
    speed_chart.draw(pen, first_columns(area, half.saturating_sub(1)));
    ttft_chart.draw(pen, from_column(area, half + 1));
}

/// Measured points, with the places of those that the run will still measure and of blocked ones.
fn points(model: &Model, kind: PlanKind, value: impl Fn(&Point) -> Option<f64>) -> Vec<XyPoint> {
    let place = |cell: &Cell| match kind {
        PlanKind::LongContext => cell.input,
        PlanKind::Throughput => u64::from(cell.concurrency),
    };
    let measured = match kind {
        PlanKind::LongContext => model.bench.long_context(None),
        PlanKind::Throughput => model.bench.throughput(None),
    };
    let mut out: Vec<XyPoint> = measured
        .into_iter()
        .map(|point| {
            let y = value(point).filter(|y| y.is_finite());
            let (y, dot) = match (point.validity, y) {
                (Validity::Valid, Some(y)) => (Some(y), Dot::Counts),
                (Validity::Suspect, Some(y)) => (Some(y), Dot::Doubt),
                _ => (None, Dot::Missing),
            };
            XyPoint {
                x: place(&point.cell),
                y,
                dot,
            }
        })
        .collect();
    let run = model.bench.run.as_ref().filter(|run| run.plan.kind == kind);
    let ahead = run.into_iter().flat_map(|run| run.cells.iter());
    let mut others: Vec<(u64, Dot)> = ahead.map(|cell| (place(cell), Dot::Ahead)).collect();
    if kind == PlanKind::LongContext {
        let blocked = model.bench.blocked.iter();
        others.extend(blocked.map(|blocked| (place(&blocked.cell), Dot::Missing)));
    }
    for (x, dot) in others {
        if out.iter().all(|point| point.x != x) {
            out.push(XyPoint { x, y: None, dot });
        }
    }
    out.sort_by_key(|point| point.x);
    out
}
