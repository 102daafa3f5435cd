//! Benchmark runs with their points and requests.

use super::value::{Count, Json, Word};
use super::{Store, StoreError, secrets};
use crate::bench::plan::{Plan, PlanKind};
use crate::bench::point::{Failure, Point, RequestRecord};
use crate::engine::Kind;
use rusqlite::{Row, params};
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
                     simulated, started_unix_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
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
                    new.started_unix_ms
                ],
            )?;
            Ok(tx.last_insert_rowid())
        })
    }

    /// Adds a measured point with its requests; gives its id.
    pub fn add_point(&mut self, run: i64, point: &Point) -> Result<i64, StoreError> {
        let slim = Point {
            requests: Vec::new(),
            ..point.clone()
        };
        self.write("add a point", |tx| {
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
            let id = tx.last_insert_rowid();
            let mut insert = tx.prepare_cached(
                "INSERT INTO requests (point_id, position, start_ms, ttft_ms, first_answer_ms, e2e_ms, tpot_ms, input_tokens,
                     output_tokens, cached_tokens, chunks, failure)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?;
            for (position, request) in (0_i64..).zip(&point.requests) {
                insert.execute(params![
                    id,
                    position,
                    request.start_ms,
                    request.ttft_ms,
                    request.first_answer_ms,
                    request.e2e_ms,
                    request.tpot_ms,
                    request.input_tokens.map(Count),
                    request.output_tokens.map(Count),
                    request.cached_tokens.map(Count),
                    Count(request.chunks),
                    request.failure.as_ref().map(Json)
                ])?;
            }
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

    fn run_rows(&self, which: &str, value: i64) -> Result<Vec<RunRow>, StoreError> {
        self.read("list the runs", |conn| {
            conn.prepare_cached(&format!(
                "SELECT r.id, r.session_id, s.profile, r.plan_name, r.plan_kind, r.url, r.engine, r.engine_version, r.model,
                        r.context, r.seed, r.simulated, r.started_unix_ms, r.ended_unix_ms, r.ending,
                        (SELECT count(*) FROM points p WHERE p.run_id = r.id),
                        (SELECT count(*) FROM points p WHERE p.run_id = r.id AND p.validity = 'void')
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

    /// The requests of a point in the order of the record.
    pub fn requests(&self, point: i64) -> Result<Vec<RequestRecord>, StoreError> {
        self.read("read the requests", |conn| {
            conn.prepare_cached(
                "SELECT start_ms, ttft_ms, first_answer_ms, e2e_ms, tpot_ms, input_tokens, output_tokens, cached_tokens, chunks, failure
                 FROM requests WHERE point_id = ?1 ORDER BY position",
            )?
            .query_map([point], |row| {
                let count = |index: usize| -> rusqlite::Result<Option<u64>> {
                    Ok(row.get::<_, Option<Count>>(index)?.map(|count| count.0))
                };
                Ok(RequestRecord {
                    start_ms: row.get(0)?,
                    client_queue_ms: None,
                    ttft_ms: row.get(1)?,
                    first_answer_ms: row.get(2)?,
                    e2e_ms: row.get(3)?,
                    tpot_ms: row.get(4)?,
                    input_tokens: count(5)?,
                    output_tokens: count(6)?,
                    cached_tokens: count(7)?,
                    chunks: row.get::<_, Count>(8)?.0,
                    failure: row.get::<_, Option<Json<Failure>>>(9)?.map(|json| json.0),
                })
            })?
            .collect()
        })
    }
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
    })
}
