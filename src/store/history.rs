//! The memory of every card over the session. It grows slowly: readings are kept for an hour, minutes for a week, hours for good.

use super::value::Count;
use super::{Store, StoreError};
use crate::gpu::Snapshot;
use rusqlite::{Connection, params};
use serde::Serialize;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

/// How old rows of one span may get before they are drawn together into the next: (span, next span, age), milliseconds.
const THINNING: [(i64, i64, i64); 2] = [(0, MINUTE, HOUR), (MINUTE, HOUR, 7 * 24 * HOUR)];

/// The memory of one card at one moment, bytes. Where there is no reading, there is no sample: a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySample {
    pub at_unix_ms: i64,
    pub card: u32,
    pub used: u64,
    pub total: u64,
}

impl MemorySample {
    /// What a snapshot has that was read just now.
    pub fn of(snapshot: &Snapshot) -> impl Iterator<Item = MemorySample> + '_ {
        snapshot.cards.iter().filter_map(|card| {
            card.memory.fresh().map(|memory| MemorySample {
                at_unix_ms: snapshot.at.unix_ms,
                card: card.index,
                used: memory.used,
                total: memory.total,
            })
        })
    }
}

/// The memory of one card over a stretch of time, bytes used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Band {
    pub card: u32,
    /// First reading in it.
    pub at_unix_ms: i64,
    pub min: u64,
    pub mean: u64,
    pub max: u64,
    pub total: u64,
}

impl Store {
    /// Adds readings. Best in batches of some seconds. A reading of a moment that is there already takes its place.
    pub fn add_memory(&mut self, session: i64, samples: &[MemorySample]) -> Result<(), StoreError> {
        let Some(newest) = samples.iter().map(|sample| sample.at_unix_ms).max() else {
            return Ok(());
        };
        self.write("add to the memory history", |tx| {
            let last: Option<i64> = tx.query_row(
                "SELECT max(at_unix_ms) FROM memory_history WHERE session_id = ?1 AND span_ms = 0",
                [session],
                |row| row.get(0),
            )?;
            let mut insert = tx.prepare_cached(
                "INSERT OR REPLACE INTO memory_history
                     (session_id, span_ms, card, at_unix_ms, samples, used_min, used_mean, used_max, total)
                 VALUES (?1, 0, ?2, ?3, 1, ?4, ?4, ?4, ?5)",
            )?;
            for sample in samples {
                insert.execute(params![
                    session,
                    sample.card,
                    sample.at_unix_ms,
                    Count(sample.used),
                    Count(sample.total)
                ])?;
            }
            // Once in ten minutes of the session is often enough.
            let turn = |at: i64| at.div_euclid(10 * MINUTE);
            if last.is_none_or(|last| turn(newest) != turn(last)) {
                thin(tx, newest)?;
            }
            Ok(())
        })
    }

    /// First and last moment of a session's history.
    pub fn memory_span(&self, session: i64) -> Result<Option<(i64, i64)>, StoreError> {
        self.read("read the memory history", |conn| {
            conn.query_row(
                "SELECT min(at_unix_ms), max(at_unix_ms) FROM memory_history WHERE session_id = ?1",
                [session],
                |row| Ok(row.get::<_, Option<i64>>(0)?.zip(row.get(1)?)),
            )
        })
    }

    /// The history between two moments, at most `columns` bands a card, by card and time. A stretch without any reading gives no band.
    pub fn memory(
        &self,
        session: i64,
        from_unix_ms: i64,
        to_unix_ms: i64,
        columns: u32,
    ) -> Result<Vec<Band>, StoreError> {
        let columns = i64::from(columns.max(1));
        let length = to_unix_ms.saturating_sub(from_unix_ms).max(1);
        // Rounded up: the last moment falls into the last column.
        let width = length / columns + 1;
        self.read("read the memory history", |conn| {
            conn.prepare_cached(
                "SELECT card, min(at_unix_ms), min(used_min), sum(used_mean * samples) / sum(samples), max(used_max), max(total)
                 FROM memory_history WHERE session_id = ?1 AND at_unix_ms BETWEEN ?2 AND ?3
                 GROUP BY card, (at_unix_ms - ?2) / ?4 ORDER BY card, 2",
            )?
            .query_map(params![session, from_unix_ms, to_unix_ms, width], |row| {
                Ok(Band {
                    card: row.get(0)?,
                    at_unix_ms: row.get(1)?,
                    min: row.get::<_, Count>(2)?.0,
                    mean: row.get::<_, Count>(3)?.0,
                    max: row.get::<_, Count>(4)?.0,
                    total: row.get::<_, Count>(5)?.0,
                })
            })?
            .collect()
        })
    }
}

/// Draws old rows of all sessions together.
pub(super) fn thin(conn: &Connection, now_unix_ms: i64) -> rusqlite::Result<()> {
    for (span, next, age) in THINNING {
        // A whole number of the next span: no stretch is ever drawn together twice.
        let until = now_unix_ms.saturating_sub(age).div_euclid(next) * next;
        conn.prepare_cached(
            "INSERT OR REPLACE INTO memory_history
                 (session_id, span_ms, card, at_unix_ms, samples, used_min, used_mean, used_max, total)
             SELECT session_id, ?2, card, at_unix_ms / ?2 * ?2, sum(samples), min(used_min),
                    sum(used_mean * samples) / sum(samples), max(used_max), max(total)
             FROM memory_history WHERE span_ms = ?1 AND at_unix_ms < ?3
             GROUP BY session_id, card, at_unix_ms / ?2",
        )?
        .execute(params![span, next, until])?;
        conn.prepare_cached("DELETE FROM memory_history WHERE span_ms = ?1 AND at_unix_ms < ?2")?
            .execute(params![span, until])?;
    }
    Ok(())
}
