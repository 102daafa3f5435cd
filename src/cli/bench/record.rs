//! The run on record: begun, or gone on with.

use super::order::Order;
use crate::bench::plan::Cell;
use crate::bench::point::{Point, RequestRecord};
use crate::bench::pool;
use crate::cli::Failure;
use crate::places::Places;
use crate::report::bench::RunReport;
use crate::store::{Ending, RunRow, Store};
use rustix::fs::{FlockOperation, flock};
use std::collections::HashMap;
use std::fs::File;

/// A cell to be measured, and its number in the order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Due {
    pub number: u32,
    /// What is left to measure of it.
    pub cell: Cell,
    /// What the order says.
    pub whole: Cell,
}

/// The run that is being measured. Nobody else measures it meanwhile.
#[derive(Debug)]
pub struct Record {
    pub store: Store,
    pub run: i64,
    /// Requests of cells that were there before, by number.
    earlier: HashMap<u32, u32>,
    _lock: File,
}

impl Record {
    /// Takes the run, or says that somebody has it.
    pub fn hold(store: Store, run: i64, places: &Places) -> Result<Record, Failure> {
        let folder = places.state.join("runs");
        let path = folder.join(format!("{run}.lock"));
        let fail = |error: std::io::Error| {
            Failure::new(format!("cannot lock {}: {error}", path.display()))
        };
        std::fs::create_dir_all(&folder).map_err(fail)?;
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(fail)?;
        // The kernel lets it go when this program ends, however that happens.
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(Failure::new(format!(
                    "run {run} is being measured by another vramp just now"
                )));
            }
            Err(error) => return Err(fail(error.into())),
        }
        Ok(Record {
            store,
            run,
            earlier: HashMap::new(),
            _lock: file,
        })
    }

    /// What is still to be measured of `cells`. Points that are there stay; one that was stopped in the middle gives its requests back.
    pub fn remaining(&mut self, order: &Order, cells: &[Cell]) -> Result<Vec<Due>, Failure> {
        let mut there: Vec<(i64, Point)> = self
            .store
            .run_points(self.run)
            .map_err(Failure::new)?
            .into_iter()
            .filter(|stored| !stored.point.repeat)
            .map(|stored| (stored.id, stored.point))
            .collect();
        let mut due = Vec::new();
        for (number, whole) in (0_u32..).zip(cells) {
            let at = there.iter().position(|(_, point)| same(&point.cell, whole));
            if let Some((id, point)) = at.map(|at| there.swap_remove(at)) {
                if !point.partial {
                    continue;
                }
                let requests = self.store.requests(id).map_err(Failure::new)?;
                self.store.drop_point(id).map_err(Failure::new)?;
                self.keep_requests(number, &requests)?;
            }
            let early = self
                .store
                .early_requests(self.run, number)
                .map_err(Failure::new)?;
            let mut cell = *whole;
            if whole.requests == Cell::UNCOUNTED || order.duration_ms.is_some() {
                // Half of a stated time is not the time.
                self.store
                    .drop_early_requests(self.run, number)
                    .map_err(Failure::new)?;
            } else if !early.is_empty() {
                let done = u32::try_from(early.len()).unwrap_or(u32::MAX);
                self.earlier.insert(number, done);
                // A load that never was complete has no throughput.
                let least = whole.concurrency.min(whole.requests);
                cell.requests = whole.requests.saturating_sub(done).max(least);
            }
            due.push(Due {
                number,
                cell,
                whole: *whole,
            });
        }
        Ok(due)
    }

    pub fn keep_requests(&mut self, number: u32, records: &[RequestRecord]) -> Result<(), Failure> {
        self.store
            .add_early_requests(self.run, number, records)
            .map_err(Failure::new)
    }

    /// Keeps a measured point of cell `number`, together with the requests that were there before; gives what is kept.
    pub fn keep_point(
        &mut self,
        number: u32,
        whole: Cell,
        mut point: Point,
    ) -> Result<Point, Failure> {
        let told = std::mem::take(&mut point.requests);
        if !told.is_empty() {
            self.keep_requests(number, &told)?;
        }
        if let Some(earlier) = self.earlier.remove(&number) {
            let all = self
                .store
                .early_requests(self.run, number)
                .map_err(Failure::new)?;
            point = pool::with_earlier(point, whole, earlier, &all);
        }
        self.store
            .finish_cell(self.run, number, &point)
            .map_err(Failure::new)?;
        Ok(point)
    }

    pub fn end(&mut self, ending: Ending) -> Result<(), Failure> {
        self.store
            .end_run(self.run, ending, crate::clock::unix_ms())
            .map_err(Failure::new)
    }

    pub fn report(&self) -> Result<RunReport, Failure> {
        RunReport::read(&self.store, self.run)
            .map_err(Failure::new)?
            .ok_or_else(|| Failure::new(format!("run {} is gone from the record", self.run)))
    }
}

/// The same load; how many requests it was cut into does not matter.
fn same(a: &Cell, b: &Cell) -> bool {
    (a.input, a.output, a.concurrency, a.arrivals) == (b.input, b.output, b.concurrency, b.arrivals)
}

/// The run to go on with: number `id`, or the newest unfinished one that `fits`.
pub fn unfinished(
    store: &Store,
    id: Option<i64>,
    fits: impl Fn(&Order) -> bool,
) -> Result<(RunRow, Order), Failure> {
    let rows = store.unfinished_runs(1000).map_err(Failure::new)?;
    for row in rows {
        if id.is_some_and(|id| id != row.id) {
            continue;
        }
        let order = store.benchmark(row.id).map_err(Failure::new)?;
        if let Some(order) = order.and_then(|value| serde_json::from_value::<Order>(value).ok())
            && (id.is_some() || fits(&order))
        {
            return Ok((row, order));
        }
    }
    Err(Failure::wrong_use(match id {
        Some(id) => format!(
            "run {id} cannot be gone on with: it is finished, not on record, or not from vramp bench"
        ),
        None => {
            "no unfinished run of this order is on record; begin it without --resume".to_string()
        }
    }))
}
