//! Benchmark runs with their points and requests.

use super::value::{Count, Json, Word};
use super::{Store, StoreError, requests, secrets};
use crate::bench::plan::{Plan, PlanKind};
use crate::bench::point::Point;
use crate::engine::Kind;
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};

/// What is known when a run begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun<'a> {
    /// The session it belongs to; `None` for a run from the command line.
    pub session: Option<i64>,
    pub plan: &'a Plan,
    /// Base URL of the server. User, password and query are not written.
    pub url: &'a str,
    pub engine: Kind,
    pub engine_version: Option<&'a str>,
    pub model: &'a str,
    /// Context served, tokens per request.
    pub context: Option<u64>,
    pub seed: u64,
    pub simulated: bool,
    pub started_unix_ms: i64,
    /// By which it is asked for later.
    pub name: Option<&'a str>,
    /// What exactly was asked for, so that it can be gone on with; `None` for runs of the cockpit.
    pub benchmark: Option<&'a serde_json::Value>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Every cell was run.
    Finished,
    /// The operator stopped it; what was measured counts.
    Stopped,
    /// It could not go on.
    Failed,
}

/// One line of the list of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunRow {
    pub id: i64,
    /// Its name, where it was given one.
    pub name: Option<String>,
    pub session: Option<i64>,
    /// The session's profile.
    pub profile: Option<String>,
    pub plan: String,
    pub kind: PlanKind,
    pub url: String,
    pub engine: Kind,
    pub engine_version: Option<String>,
    pub model: String,
    pub context: Option<u64>,
    /// Makes the prompts of this run again.
    pub seed: u64,
    pub simulated: bool,
    pub started_unix_ms: i64,
    /// `None` while it goes on, or if the program died in the middle.
    pub ended_unix_ms: Option<i64>,
    pub ending: Option<Ending>,
    /// Points measured, and how many of them do not count.
    pub points: u64,
    pub void: u64,
}

/// A point from the record. Its requests are left out; [`Store::requests`] has them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredPoint {
    pub id: i64,
    pub run: i64,
    pub point: Point,
}

impl Store {
    /// Begins a run; gives its id.
    pub fn begin_run(&mut self, new: &NewRun<'_>) -> Result<i64, StoreError> {
        self.write("begin a run", |tx| {
            tx.execute(
                "INSERT INTO runs (session_id, plan_name, plan_kind, plan, url, engine, engine_version, model, context, seed,
                     simulated, started_unix_ms, name, benchmark)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
                params![
                    new.session,
                    new.plan.name,
                    Word(new.plan.kind),
                    Json(new.plan),
                    secrets::url(new.url),
                    Word(new.engine),
                    new.engine_version,
                    new.model,
                    new.context.map(Count),
                    // A seed uses all 64 bits; the column keeps them as they are.
                    new.seed.cast_signed(),
                    new.simulated,
                    new.started_unix_ms,
                    new.name,
                    new.benchmark.map(Json)
                ],
            )?;
            Ok(tx.last_insert_rowid())
        })
    }

    /// Adds a measured point with its requests; gives its id.
    pub fn add_point(&mut self, run: i64, point: &Point) -> Result<i64, StoreError> {
        self.write("add a point", |tx| {
            let id = insert_point(tx, run, point)?;
            requests::insert(tx, id, &point.requests)?;
            Ok(id)
        })
    }

    /// Adds the point of cell `cell`, whose requests came one by one before; gives its id.
    pub fn finish_cell(&mut self, run: i64, cell: u32, point: &Point) -> Result<i64, StoreError> {
        self.write("add a point", |tx| {
            let id = insert_point(tx, run, point)?;
            requests::adopt(tx, run, cell, id)?;
            Ok(id)
        })
    }

    /// Ends a run.
    pub fn end_run(&mut self, run: i64, ending: Ending, at_unix_ms: i64) -> Result<(), StoreError> {
        self.write("end a run", |tx| {
            tx.execute(
                "UPDATE runs SET ended_unix_ms = ?2, ending = ?3 WHERE id = ?1",
                params![run, at_unix_ms, Word(ending)],
            )
            .map(drop)
        })
    }

    /// The newest `limit` runs, newest first.
    pub fn runs(&self, limit: u32) -> Result<Vec<RunRow>, StoreError> {
        self.run_rows("ORDER BY r.id DESC LIMIT ?1", i64::from(limit))
    }

    /// The runs of a session, oldest first.
    pub fn session_runs(&self, session: i64) -> Result<Vec<RunRow>, StoreError> {
        self.run_rows("WHERE r.session_id = ?1 ORDER BY r.id", session)
    }

    /// One run, if it is on record.
    pub fn run(&self, id: i64) -> Result<Option<RunRow>, StoreError> {
        Ok(self.run_rows("WHERE r.id = ?1", id)?.pop())
    }

    /// The newest run of a name.
    pub fn run_named(&self, name: &str) -> Result<Option<RunRow>, StoreError> {
        let id: Option<i64> = self.read("find the run", |conn| {
            conn.query_row("SELECT max(id) FROM runs WHERE name = ?1", [name], |row| {
                row.get(0)
            })
        })?;
        id.map_or(Ok(None), |id| self.run(id))
    }

    /// What exactly a run was asked to measure, as [`NewRun::benchmark`] had it.
    pub fn benchmark(&self, run: i64) -> Result<Option<serde_json::Value>, StoreError> {
        self.read("read the run", |conn| {
            let found: Option<Option<Json<serde_json::Value>>> = conn
                .query_row("SELECT benchmark FROM runs WHERE id = ?1", [run], |row| {
                    row.get(0)
                })
                .optional()?;
            Ok(found.flatten().map(|json| json.0))
        })
    }

    /// The newest `limit` runs from the command line that did not finish, newest first.
    pub fn unfinished_runs(&self, limit: u32) -> Result<Vec<RunRow>, StoreError> {
        self.run_rows(
            "WHERE r.benchmark IS NOT NULL AND r.ending IS NOT 'finished' ORDER BY r.id DESC LIMIT ?1",
            i64::from(limit),
        )
    }

    /// A run that had ended, or whose program died, goes on.
    pub fn go_on(&mut self, run: i64) -> Result<(), StoreError> {
        self.write("go on with a run", |tx| {
            tx.execute(
                "UPDATE runs SET ended_unix_ms = NULL, ending = NULL WHERE id = ?1",
                [run],
            )
            .map(drop)
        })
    }

    /// Forgets a point that is measured anew; its requests go with it.
    pub fn drop_point(&mut self, point: i64) -> Result<(), StoreError> {
        self.write("drop a point", |tx| {
            tx.execute("DELETE FROM points WHERE id = ?1", [point])
                .map(drop)
        })
    }

    fn run_rows(&self, which: &str, value: i64) -> Result<Vec<RunRow>, StoreError> {
        self.read("list the runs", |conn| {
            conn.prepare_cached(&format!(
                "SELECT r.id, r.session_id, s.profile, r.plan_name, r.plan_kind, r.url, r.engine, r.engine_version, r.model,
                        r.context, r.seed, r.simulated, r.started_unix_ms, r.ended_unix_ms, r.ending,
                        (SELECT count(*) FROM points p WHERE p.run_id = r.id),
                        (SELECT count(*) FROM points p WHERE p.run_id = r.id AND p.validity = 'void'),
                        r.name
                 FROM runs r LEFT JOIN sessions s ON s.id = r.session_id {which}"
            ))?
            .query_map([value], run_row)?
            .collect()
        })
    }

    /// Every point of a session in the order of measurement.
    pub fn session_points(&self, session: i64) -> Result<Vec<StoredPoint>, StoreError> {
        self.points(
            "SELECT p.id, p.run_id, p.point FROM points p JOIN runs r ON r.id = p.run_id WHERE r.session_id = ?1 ORDER BY p.id",
            session,
        )
    }

    /// Every point of a run in the order of measurement.
    pub fn run_points(&self, run: i64) -> Result<Vec<StoredPoint>, StoreError> {
        self.points(
            "SELECT id, run_id, point FROM points WHERE run_id = ?1 ORDER BY id",
            run,
        )
    }

    fn points(&self, sql: &str, id: i64) -> Result<Vec<StoredPoint>, StoreError> {
        self.read("read the points", |conn| {
            conn.prepare_cached(sql)?
                .query_map([id], |row| {
                    Ok(StoredPoint {
                        id: row.get(0)?,
                        run: row.get(1)?,
                        point: row.get::<_, Json<Point>>(2)?.0,
                    })
                })?
                .collect()
        })
    }
}

fn insert_point(tx: &Transaction<'_>, run: i64, point: &Point) -> rusqlite::Result<i64> {
    let slim = Point {
        requests: Vec::new(),
        ..point.clone()
    };
    tx.execute(
        "INSERT INTO points (run_id, input, output, concurrency, context, ended_unix_ms, validity, output_tok_s, decode_tok_s,
             ttft_p50_ms, point)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            run,
            Count(point.cell.input),
            Count(point.cell.output),
            point.cell.concurrency,
            point.context.map(Count),
            point.ended_unix_ms,
            Word(point.validity),
            point.output_tok_s,
            point.decode_tok_s,
            point.ttft_ms.p50,
            Json(&slim)
        ],
    )?;
    Ok(tx.last_insert_rowid())
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        id: row.get(0)?,
        session: row.get(1)?,
        profile: row.get(2)?,
        plan: row.get(3)?,
        kind: row.get::<_, Word<PlanKind>>(4)?.0,
        url: row.get(5)?,
        engine: row.get::<_, Word<Kind>>(6)?.0,
        engine_version: row.get(7)?,
        model: row.get(8)?,
        context: row.get::<_, Option<Count>>(9)?.map(|count| count.0),
        seed: row.get::<_, i64>(10)?.cast_unsigned(),
        simulated: row.get(11)?,
        started_unix_ms: row.get(12)?,
        ended_unix_ms: row.get(13)?,
        ending: row.get::<_, Option<Word<Ending>>>(14)?.map(|word| word.0),
        points: row.get::<_, Count>(15)?.0,
        void: row.get::<_, Count>(16)?.0,
        name: row.get(17)?,
    })
}
