//! Configurations tried, and what speaks for and against each.

use super::value::{Count, Json};
use super::{Store, StoreError, secrets};
use crate::app::model::Tried;
use crate::service::Config;
use rusqlite::params;

impl Store {
    /// Keeps what is known of one context in a session, in place of what was known before. Secrets of its launch are not written.
    pub fn record_config(&mut self, session: i64, tried: &Tried) -> Result<(), StoreError> {
        let mut kept = tried.clone();
        kept.config = tried.config.as_ref().map(|config| Config {
            launch: secrets::launch(&config.launch),
            ..config.clone()
        });
        self.write("record a configuration", |tx| {
            tx.execute(
                "INSERT INTO configurations (session_id, context, evidence) VALUES (?1, ?2, ?3)
                 ON CONFLICT (session_id, context) DO UPDATE SET evidence = excluded.evidence",
                params![session, Count(kept.context), Json(&kept)],
            )
            .map(drop)
        })
    }

    /// All contexts tried in a session, ascending.
    pub fn configs(&self, session: i64) -> Result<Vec<Tried>, StoreError> {
        self.read("read the configurations tried", |conn| {
            conn.prepare_cached(
                "SELECT evidence FROM configurations WHERE session_id = ?1 ORDER BY context",
            )?
            .query_map([session], |row| Ok(row.get::<_, Json<Tried>>(0)?.0))?
            .collect()
        })
    }
}
