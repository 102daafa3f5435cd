//! Single requests: those of measured points, and those of a cell that is still being measured.

use super::value::{Count, Json};
use super::{Store, StoreError};
use crate::bench::point::{Failure, RequestRecord};
use rusqlite::{Connection, Row, ToSql, Transaction, params};

/// The columns of a request, the same in both tables.
const COLUMNS: &str = "start_ms, ttft_ms, first_answer_ms, e2e_ms, tpot_ms, input_tokens, output_tokens, cached_tokens, chunks, failure,
     client_queue_ms";

impl Store {
    /// The requests of a point in the order of the record.
    pub fn requests(&self, point: i64) -> Result<Vec<RequestRecord>, StoreError> {
        self.read("read the requests", |conn| {
            read(
                conn,
                &format!("SELECT {COLUMNS} FROM requests WHERE point_id = ?1 ORDER BY position"),
                &[&point],
            )
        })
    }

    /// Keeps requests of cell `cell` of a run whose point is not measured yet, behind those that are there.
    pub fn add_early_requests(
        &mut self,
        run: i64,
        cell: u32,
        records: &[RequestRecord],
    ) -> Result<(), StoreError> {
        self.write("keep the requests", |tx| {
            let from: i64 = tx.query_row(
                "SELECT coalesce(max(position) + 1, 0) FROM early_requests WHERE run_id = ?1 AND cell = ?2",
                params![run, cell],
                |row| row.get(0),
            )?;
            let mut insert = tx.prepare_cached(&format!(
                "INSERT INTO early_requests (run_id, cell, position, {COLUMNS})
                 VALUES (?12, ?13, ?14, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
            ))?;
            for (position, record) in (from..).zip(records) {
                bind(record, |values| {
                    let mut all = values.to_vec();
                    all.extend_from_slice(&[&run, &cell, &position]);
                    insert.execute(all.as_slice())
                })?;
            }
            Ok(())
        })
    }

    /// The requests of a cell whose point is not measured yet.
    pub fn early_requests(&self, run: i64, cell: u32) -> Result<Vec<RequestRecord>, StoreError> {
        self.read("read the requests", |conn| {
            read(
                conn,
                &format!(
                    "SELECT {COLUMNS} FROM early_requests WHERE run_id = ?1 AND cell = ?2 ORDER BY position"
                ),
                &[&run, &cell],
            )
        })
    }

    /// Forgets the requests of a cell that begins anew.
    pub fn drop_early_requests(&mut self, run: i64, cell: u32) -> Result<(), StoreError> {
        self.write("drop the requests", |tx| {
            tx.execute(
                "DELETE FROM early_requests WHERE run_id = ?1 AND cell = ?2",
                params![run, cell],
            )
            .map(drop)
        })
    }
}

/// Adds the requests of a point.
pub(super) fn insert(
    tx: &Transaction<'_>,
    point: i64,
    records: &[RequestRecord],
) -> rusqlite::Result<()> {
    let mut insert = tx.prepare_cached(&format!(
        "INSERT INTO requests (point_id, position, {COLUMNS})
         VALUES (?12, ?13, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
    ))?;
    for (position, record) in (0_i64..).zip(records) {
        bind(record, |values| {
            let mut all = values.to_vec();
            all.extend_from_slice(&[&point, &position]);
            insert.execute(all.as_slice())
        })?;
    }
    Ok(())
}

/// The requests of cell `cell` that came one by one become those of its point.
pub(super) fn adopt(tx: &Transaction<'_>, run: i64, cell: u32, point: i64) -> rusqlite::Result<()> {
    tx.execute(
        &format!(
            "INSERT INTO requests (point_id, position, {COLUMNS})
             SELECT ?3, position, {COLUMNS} FROM early_requests WHERE run_id = ?1 AND cell = ?2"
        ),
        params![run, cell, point],
    )?;
    tx.execute(
        "DELETE FROM early_requests WHERE run_id = ?1 AND cell = ?2",
        params![run, cell],
    )
    .map(drop)
}

fn bind<T>(record: &RequestRecord, with: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
    with(&[
        &record.start_ms,
        &record.ttft_ms,
        &record.first_answer_ms,
        &record.e2e_ms,
        &record.tpot_ms,
        &record.input_tokens.map(Count),
        &record.output_tokens.map(Count),
        &record.cached_tokens.map(Count),
        &Count(record.chunks),
        &record.failure.as_ref().map(Json),
        &record.client_queue_ms,
    ])
}

fn read(
    conn: &Connection,
    sql: &str,
    which: &[&dyn ToSql],
) -> rusqlite::Result<Vec<RequestRecord>> {
    conn.prepare_cached(sql)?
        .query_map(which, record)?
        .collect()
}

fn record(row: &Row<'_>) -> rusqlite::Result<RequestRecord> {
    let count = |index: usize| -> rusqlite::Result<Option<u64>> {
        Ok(row.get::<_, Option<Count>>(index)?.map(|count| count.0))
    };
    Ok(RequestRecord {
        start_ms: row.get(0)?,
        ttft_ms: row.get(1)?,
        first_answer_ms: row.get(2)?,
        e2e_ms: row.get(3)?,
        tpot_ms: row.get(4)?,
        input_tokens: count(5)?,
        output_tokens: count(6)?,
        cached_tokens: count(7)?,
        chunks: row.get::<_, Count>(8)?.0,
        failure: row.get::<_, Option<Json<Failure>>>(9)?.map(|json| json.0),
        client_queue_ms: row.get(10)?,
    })
}
