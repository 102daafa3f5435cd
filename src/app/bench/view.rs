//! What the pane shows: which charts, how much of them, and which rows.

use super::series::{Shape, names, place, series};
use super::{BenchPane, BlockedCell, Compared};
use crate::app::model::Model;
use crate::bench::plan::{Cell, PlanKind};
use crate::bench::point::Point;

/// The charts of the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// The run over its time.
    Live,
    /// Speed and first token by concurrency or input length.
    Curves,
    /// Output rate against latency.
    Latency,
}

impl View {
    pub fn words(self) -> &'static str {
        match self {
            View::Live => "live",
            View::Curves => "curves",
            View::Latency => "latency",
        }
    }
}

/// Seconds that the live charts may show; after the last comes the whole run.
const WINDOWS: [u64; 4] = [15, 60, 300, 1_200];
/// Places that a chart keeps however far it is narrowed.
const LEAST: usize = 2;

/// Points for one line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'m> {
    pub name: String,
    pub points: Vec<&'m Point>,
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
pub enum Row<'m> {
    /// Of which context and load the points under it are; only where there are several.
    Heading(String),
    Point {
        point: &'m Point,
        /// Its place among all rows that can be selected.
        at: usize,
        /// Decode rate of the shortest input in its line.
        short: Option<f64>,
    },
    /// The cell that runs: done, of.
    Running(&'m Cell, u32, u32),
    Blocked(&'m BlockedCell),
}

impl BenchPane {
    /// The views that have something to show, in the order in which a key goes through them.
    pub fn views(&self) -> Vec<View> {
        let measured = match &self.compared {
            Some(compared) => !compared.lines(PlanKind::Throughput).is_empty(),
            None => self
                .points
                .iter()
                .any(|p| p.cell.kind == PlanKind::Throughput),
        };
        [
            (View::Live, self.timeline.is_some()),
            (View::Curves, true),
            (View::Latency, measured),
        ]
        .into_iter()
        .filter_map(|(view, there)| there.then_some(view))
        .collect()
    }

    /// The view on screen: the chosen one, else live charts while a run goes on and curves otherwise.
    pub fn shown(&self) -> View {
        let views = self.views();
        let own = if self.run.is_some() && self.compared.is_none() {
            View::Live
        } else {
            View::Curves
        };
        let wanted = self.view.unwrap_or(own);
        if views.contains(&wanted) {
            wanted
        } else {
            View::Curves
        }
    }

    /// The view after `view`.
    pub fn after(&self, view: View) -> View {
        let views = self.views();
        let at = views.iter().position(|one| *one == view).unwrap_or(0);
        views
            .get((at + 1) % views.len().max(1))
            .copied()
            .unwrap_or(view)
    }

    /// The finished points in lines, the run's own and then the newest first. While a run goes on there are only those of its kind.
    pub fn listed(&self) -> Vec<super::series::Series<'_>> {
        let of_run = self.run.as_ref().map(|run| run.plan.kind);
        let points = self.points.iter();
        let mut all = series(points.filter(|p| of_run.is_none_or(|kind| p.cell.kind == kind)));
        if let Some(own) = self.run.as_ref().and_then(super::Run::shape) {
            all.sort_by_key(|one| one.shape != own);
        }
        all
    }

    /// Points that can be selected, as the table lists them.
    pub fn rows(&self) -> Vec<&Point> {
        self.listed()
            .into_iter()
            .flat_map(|one| one.points)
            .collect()
    }

    /// The point that is selected.
    pub fn selected(&self) -> Option<&Point> {
        self.rows().get(self.scroll).copied()
    }

    /// The kind of the points on show: of the run or of the comparison, else of the selected row.
    pub fn kind(&self) -> PlanKind {
        let of_run = self.run.as_ref().map(|run| run.plan.kind);
        let compared = self.compared.as_ref().map(|c| c.kind());
        compared
            .or(of_run)
            .or_else(|| self.selected().map(|p| p.cell.kind))
            .or_else(|| self.listed().first().map(|one| one.shape.kind))
            .unwrap_or(PlanKind::LongContext)
    }

    /// The rows of a kind: what was measured, what runs, what is blocked.
    pub fn table(&self, kind: PlanKind) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        let mut at = 0;
        let all = self.listed();
        let own: Vec<Shape> = all
            .iter()
            .map(|one| one.shape)
            .filter(|shape| shape.kind == kind)
            .collect();
        let mut headings = names(&own).into_iter();
        let running = self.run.as_ref().and_then(|run| {
            let row = Row::Running(run.cell()?, run.live.done, run.live.of);
            Some((run.shape()?, row))
        });
        let mut running = running.filter(|(shape, _)| shape.kind == kind);
        // The first cell of a line that has no point yet.
        if let Some((_, row)) = running.take_if(|(shape, _)| !own.contains(shape)) {
            rows.push(row);
        }
        for one in all {
            if one.shape.kind != kind {
                at += one.points.len();
                continue;
            }
            rows.extend(headings.next().filter(|_| own.len() > 1).map(Row::Heading));
            let short = one.short();
            for point in one.points {
                rows.push(Row::Point { point, at, short });
                at += 1;
            }
            if let Some((_, row)) = running.take_if(|(shape, _)| *shape == one.shape) {
                rows.push(row);
            }
        }
        if kind == PlanKind::LongContext {
            rows.extend(self.blocked.iter().map(Row::Blocked));
        }
        rows
    }

    /// Shows more or less: of the run's time where it is drawn, else of the levels or lengths.
    pub fn narrow(&mut self, less: bool) {
        if self.shown() == View::Live {
            self.window_s = step(self.window_s, less);
            return;
        }
        let places = match self.shown() {
            View::Latency => places(&self.all_lines(PlanKind::Throughput)).len(),
            _ => places(&self.all_lines(self.kind())).len(),
        };
        let most = places.saturating_sub(LEAST);
        self.hidden = if less {
            (self.hidden + 1).min(most)
        } else {
            self.hidden.min(most).saturating_sub(1)
        };
    }

    fn all_lines(&self, kind: PlanKind) -> Vec<Line<'_>> {
        if let Some(compared) = &self.compared {
            return Compared::lines(compared, kind);
        }
        let mut all = series(self.points.iter().filter(|p| p.cell.kind == kind));
        if let Some(own) = self.run.as_ref().and_then(super::Run::shape) {
            all.sort_by_key(|one| one.shape != own);
        }
        let shapes: Vec<Shape> = all.iter().map(|one| one.shape).collect();
        let names = names(&shapes);
        all.into_iter()
            .zip(names)
            .map(|(one, name)| Line {
                name,
                points: one.points,
            })
            .collect()
    }
}

fn step(window: Option<u64>, less: bool) -> Option<u64> {
    match (window, less) {
        (None, true) => WINDOWS.last().copied(),
        (None, false) => None,
        (Some(now), true) => WINDOWS
            .iter()
            .rev()
            .copied()
            .find(|w| *w < now)
            .or(Some(now)),
        (Some(now), false) => WINDOWS.iter().copied().find(|w| *w > now),
    }
}

/// All places of the lines, ascending.
fn places(lines: &[Line<'_>]) -> Vec<f64> {
    let mut all: Vec<f64> = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|p| place(&p.cell)))
        .collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// The lines of the charts of a kind, and up to which place they are drawn; `None`: to the last. While the charts are frozen, nothing
/// that was measured later is in them.
pub fn lines(model: &Model, kind: PlanKind) -> (Vec<Line<'_>>, Option<f64>) {
    let pane = &model.bench;
    let mut lines = pane.all_lines(kind);
    if let Some(frozen) = model.frozen {
        for line in &mut lines {
            line.points.retain(|p| p.ended_unix_ms <= frozen.unix_ms);
        }
        lines.retain(|line| !line.points.is_empty());
    }
    let all = places(&lines);
    let hidden = pane.hidden.min(all.len().saturating_sub(LEAST));
    let last = (hidden > 0)
        .then(|| all.get(all.len() - 1 - hidden).copied())
        .flatten();
    if let Some(last) = last {
        for line in &mut lines {
            line.points.retain(|p| place(&p.cell) <= last);
        }
        lines.retain(|line| !line.points.is_empty());
    }
    (lines, last)
}

/// The part of a run that the live charts show, in milliseconds from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveWindow {
    pub from_ms: u64,
    pub to_ms: u64,
    /// Nothing later is drawn: it is not measured yet, or the charts were frozen then.
    pub end_ms: u64,
}

impl LiveWindow {
    /// Whether a moment is drawn.
    pub fn has(&self, at_ms: u64) -> bool {
        at_ms >= self.from_ms && at_ms <= self.end_ms
    }
}

/// From where to where the live charts go. Frozen charts end where they were frozen.
pub fn live_window(model: &Model) -> LiveWindow {
    /// A run that has just begun is drawn over this long.
    const LEAST_MS: u64 = 10_000;
    let Some(line) = &model.bench.timeline else {
        return LiveWindow {
            from_ms: 0,
            to_ms: LEAST_MS,
            end_ms: 0,
        };
    };
    let now = if model.bench.run.is_some() {
        model.now.since(line.since)
    } else {
        line.end_ms()
    };
    let end = match model.frozen {
        Some(frozen) => now.min(frozen.since(line.since)),
        None => now,
    };
    let to_ms = end.max(LEAST_MS);
    let span = model.bench.window_s.map(|s| s.saturating_mul(1_000));
    LiveWindow {
        from_ms: span.map_or(0, |span| to_ms.saturating_sub(span)),
        to_ms,
        end_ms: end,
    }
}
