//! Points in lines: what may stand in one chart line or under one heading of a table, and what must not.

use crate::bench::plan::{Arrivals, Cell, PlanKind};
use crate::bench::point::Point;
use crate::units::{short_count, thousands};

/// What the points of a line have in common. They differ in concurrency (throughput) or input length (long context) alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub kind: PlanKind,
    /// Context that the server served.
    pub context: Option<u64>,
    input: Option<u64>,
    output: u64,
    concurrency: Option<u32>,
    /// Requests came at a rate, whatever the server did.
    pub open: bool,
}

impl Shape {
    /// The line that a cell belongs to.
    pub fn of(cell: &Cell, context: Option<u64>) -> Self {
        let throughput = cell.kind == PlanKind::Throughput;
        Shape {
            kind: cell.kind,
            context,
            input: throughput.then_some(cell.input),
            output: cell.output,
            concurrency: (!throughput).then_some(cell.concurrency),
            open: cell.arrivals != Arrivals::Closed,
        }
    }

    /// What besides the context tells lines apart: `1K in, 500 out`.
    fn load(&self) -> String {
        let out = format!("{} out", short_count(self.output));
        match (self.input, self.concurrency) {
            (Some(input), _) => format!("{} in, {out}", short_count(input)),
            (_, Some(n)) if n != 1 => format!("{out}, C={n}"),
            _ => out,
        }
    }
}

/// Where a cell stands in its line: its concurrency, rate or input length.
pub fn place(cell: &Cell) -> f64 {
    match (cell.kind, cell.arrivals.rate()) {
        (PlanKind::LongContext, _) => cell.input as f64,
        (PlanKind::Throughput, Some(rate)) => rate.per_second(),
        (PlanKind::Throughput, None) => f64::from(cell.concurrency),
    }
}

/// Points of one shape, ascending; the newest of each place.
#[derive(Debug, Clone, PartialEq)]
pub struct Series<'p> {
    pub shape: Shape,
    pub points: Vec<&'p Point>,
    /// Where its newest point stands among all points.
    newest: usize,
}

impl Series<'_> {
    /// The shortest input whose speed counts, for comparing the longer ones with it.
    pub fn short(&self) -> Option<f64> {
        let first = self.points.iter().find(|p| p.speed_counts())?;
        first.decode_tok_s
    }
}

/// The lines that `points` make, the one measured last first. A level measured again to see drift is no point of its own.
pub fn series<'p>(points: impl IntoIterator<Item = &'p Point>) -> Vec<Series<'p>> {
    let mut out: Vec<Series<'p>> = Vec::new();
    for (newest, point) in points.into_iter().enumerate().filter(|(_, p)| !p.repeat) {
        let shape = Shape::of(&point.cell, point.context);
        let same = |p: &&Point| place(&p.cell).total_cmp(&place(&point.cell)).is_eq();
        match out.iter_mut().find(|one| one.shape == shape) {
            Some(one) => {
                one.points.retain(|p| !same(p));
                one.points.push(point);
                one.newest = newest;
            }
            None => out.push(Series {
                shape,
                points: vec![point],
                newest,
            }),
        }
    }
    for one in &mut out {
        one.points
            .sort_by(|a, b| place(&a.cell).total_cmp(&place(&b.cell)));
    }
    out.sort_by_key(|one| std::cmp::Reverse(one.newest));
    out
}

/// What tells these lines apart: their contexts, and their loads where these differ.
pub fn names(shapes: &[Shape]) -> Vec<String> {
    let loads: Vec<String> = shapes.iter().map(Shape::load).collect();
    let differ = loads.iter().any(|load| Some(load) != loads.first());
    shapes
        .iter()
        .zip(loads)
        .map(|(shape, load)| {
            let context = shape
                .context
                .map_or("context unknown".to_string(), thousands);
            if differ {
                format!("{context}, {load}")
            } else {
                context
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(kind: PlanKind, place: u64, context: u64, output: u64) -> Point {
        let cell = Cell {
            kind,
            input: if kind == PlanKind::LongContext {
                place
            } else {
                1_000
            },
            output,
            concurrency: if kind == PlanKind::Throughput {
                place as u32
            } else {
                1
            },
            requests: 8,
            arrivals: Arrivals::Closed,
        };
        Point {
            context: Some(context),
            ..Point::empty(cell)
        }
    }

    #[test]
    fn contexts_and_loads_never_share_a_line() {
        use PlanKind::{LongContext, Throughput};
        let mut points = vec![
            point(LongContext, 10_000, 32_768, 200),
            point(LongContext, 1_000, 65_536, 200),
            point(LongContext, 1_000, 32_768, 200),
            point(Throughput, 1, 65_536, 500),
            point(Throughput, 4, 65_536, 500),
            point(Throughput, 1, 65_536, 100),
        ];
        points[4].output_tokens = 1;
        let again = Point {
            output_tokens: 2,
            ..point(Throughput, 4, 65_536, 500)
        };
        let drift = Point {
            repeat: true,
            ..point(Throughput, 1, 65_536, 500)
        };
        points.extend([again, drift]);
        let lines = series(&points);
        let shapes: Vec<Shape> = lines.iter().map(|l| l.shape).collect();
        assert_eq!(lines.len(), 4, "{shapes:?}");
        assert_eq!(
            names(&shapes[..2]),
            ["65,536, 1K in, 500 out", "65,536, 1K in, 100 out"]
        );
        assert_eq!(names(&shapes[2..]), ["32,768", "65,536"]);
        let newest = &lines[0];
        assert_eq!(newest.points.len(), 2, "each level once");
        assert_eq!(newest.points[1].output_tokens, 2, "the newest of a level");
        assert!(!newest.points[0].repeat);
        let inputs: Vec<u64> = lines[2].points.iter().map(|p| p.cell.input).collect();
        assert_eq!(inputs, [1_000, 10_000], "ascending");
    }
}
