//! The benchmark pane's state.

pub mod compared;
pub mod series;
pub mod sheet;
pub mod timeline;
pub mod view;

pub use compared::Compared;
pub use timeline::Timeline;
pub use view::View;

use crate::bench::Live;
use crate::bench::plan::{Cell, Plan, PlanKind};
use crate::bench::point::{Failure, Point};
use crate::clock::Now;
use std::collections::VecDeque;

/// A run that goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub plan: Plan,
    /// Cells in order, and which of them runs.
    pub cells: Vec<Cell>,
    pub index: usize,
    pub live: Live,
    /// Context that the server serves meanwhile.
    pub context: Option<u64>,
    /// The newest failures, newest first, at most five.
    pub failures: VecDeque<Failure>,
    /// Points of this run so far.
    pub points: usize,
    /// Id in the store.
    pub id: Option<i64>,
}

impl Run {
    pub fn new(plan: Plan, cells: Vec<Cell>, context: Option<u64>) -> Self {
        Run {
            plan,
            cells,
            index: 0,
            live: Live::default(),
            context,
            failures: VecDeque::new(),
            points: 0,
            id: None,
        }
    }

    /// The cell that runs now.
    pub fn cell(&self) -> Option<&Cell> {
        self.cells.get(self.index)
    }

    /// Share of the whole run that is done, in thousandths.
    pub fn share(&self) -> u16 {
        if self.cells.is_empty() {
            return 0;
        }
        let cell = if self.live.of > 0 {
            f64::from(self.live.done) / f64::from(self.live.of)
        } else {
            0.0
        };
        let share = (self.index as f64 + cell.min(1.0)) / self.cells.len() as f64;
        (share.clamp(0.0, 1.0) * 1000.0) as u16
    }

    /// The line that its points belong to.
    pub fn shape(&self) -> Option<series::Shape> {
        Some(series::Shape::of(self.cell()?, self.context))
    }

    pub fn push_failure(&mut self, failure: Failure) {
        self.failures.push_front(failure);
        self.failures.truncate(5);
    }
}

/// An input length or a level that cannot be run now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedCell {
    pub cell: Cell,
    pub needs: u64,
    /// The context step that would give it.
    pub raise_to: Option<u64>,
}

/// How long the server's own count of requests may lag behind ours: it is read once a second and made anew now and then.
const COUNT_LAG_MS: u64 = 3_000;

/// Our own requests on the server, as far back as its count may lag.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OwnLoad {
    /// When, and how many.
    recent: VecDeque<(u64, u32)>,
}

impl OwnLoad {
    /// So many are in flight now.
    pub fn note(&mut self, now: Now, in_flight: u32) {
        self.recent.push_back((now.mono_ms, in_flight));
        while self.recent.len() > 1
            && self
                .recent
                .front()
                .is_some_and(|(at, _)| now.mono_ms.saturating_sub(*at) > COUNT_LAG_MS)
        {
            self.recent.pop_front();
        }
    }

    /// The most that the server may still be counting.
    pub fn most(&self, now: Now) -> u32 {
        let counts = |at: u64| now.mono_ms.saturating_sub(at) <= COUNT_LAG_MS;
        self.recent
            .iter()
            .filter(|(at, _)| counts(*at))
            .map(|(_, n)| *n)
            .max()
            .unwrap_or(0)
    }
}

/// What the pane knows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BenchPane {
    pub run: Option<Run>,
    /// The run over its time, and the last one when it is over.
    pub timeline: Option<Timeline>,
    /// The charts that were chosen; `None`: those that fit what goes on.
    pub view: Option<View>,
    /// Seconds of the run in the live charts; `None`: all of it.
    pub window_s: Option<u64>,
    /// The greatest levels or lengths that the other charts leave out.
    pub hidden: usize,
    /// Two runs over each other instead of the session's points.
    pub compared: Option<Box<Compared>>,
    pub own: OwnLoad,
    /// Finished points of the session, in the order of time.
    pub points: Vec<Point>,
    /// Cells of the long-context plan that the served context cannot hold.
    pub blocked: Vec<BlockedCell>,
    pub scroll: usize,
    /// The newest failure of a run that could not start, in words.
    pub fault: Option<String>,
    /// Checks while they run: done, of, and the name of the present one.
    pub checks: Option<ChecksView>,
}

/// The checks while they run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChecksView {
    pub done: usize,
    pub of: usize,
    pub name: String,
}

impl BenchPane {
    /// The newest point of every input length at `context` (any context if `None`), ascending.
    pub fn long_context(&self, context: Option<u64>) -> Vec<&Point> {
        newest(&self.points, PlanKind::LongContext, context)
    }
}

/// The newest point of every concurrency (throughput) or input length (long context), ascending. A level measured again to see drift
/// is no point of its own.
pub fn newest(points: &[Point], kind: PlanKind, context: Option<u64>) -> Vec<&Point> {
    let mut by_key = std::collections::BTreeMap::new();
    for point in points
        .iter()
        .filter(|p| p.cell.kind == kind && !p.repeat && (context.is_none() || p.context == context))
    {
        let key = match kind {
            PlanKind::Throughput => u64::from(point.cell.concurrency),
            PlanKind::LongContext => point.cell.input,
        };
        by_key.insert(key, point);
    }
    by_key.into_values().collect()
}
