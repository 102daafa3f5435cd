//! What happened, and what was decided.

use super::value::{Count, Json, Word};
use super::{Store, StoreError};
use crate::engine::Kind;
use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};

/// What kind of thing happened. The first six are marks on the memory chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The server is stopped.
    Stop,
    /// The server is started.
    Start,
    /// A start came to another phase.
    Phase,
    /// It answered a real token.
    Ready,
    /// It does not answer any more, or has ended.
    Lost,
    /// It answers again.
    Back,
    /// A benchmark began.
    Bench,
    /// The operator decided.
    Decision,
    /// The operator's own mark.
    Mark,
    /// A start failed.
    Failed,
    /// A former configuration is back in service.
    RolledBack,
    /// Anything else worth keeping.
    Note,
}

impl EventKind {
    /// One word, as the chart shows it.
    pub fn word(self) -> &'static str {
        match self {
            EventKind::Stop => "stop",
            EventKind::Start => "start",
            EventKind::Phase => "phase",
            EventKind::Ready => "ready",
            EventKind::Lost => "lost",
            EventKind::Back => "answers again",
            EventKind::Bench => "bench",
            EventKind::Decision => "decision",
            EventKind::Mark => "mark",
            EventKind::Failed => "failed",
            EventKind::RolledBack => "rolled back",
            EventKind::Note => "note",
        }
    }
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub at_unix_ms: i64,
    pub kind: EventKind,
    pub text: String,
    /// Context per request that it concerns.
    pub context: Option<u64>,
}

/// The operator made a context the production value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    pub session: Option<i64>,
    pub at_unix_ms: i64,
    pub user: String,
    pub host: String,
    pub profile: String,
    /// The new production value, context per request.
    pub value: u64,
    /// The one before.
    pub previous: Option<u64>,
    pub engine: Option<Kind>,
    pub engine_version: Option<String>,
    pub model: Option<String>,
    pub simulated: bool,
    /// What was on the table: the configurations tried, as the question showed them.
    pub evidence: serde_json::Value,
}

impl Store {
    /// Keeps one event.
    pub fn add_event(&mut self, session: i64, event: &Event) -> Result<(), StoreError> {
        self.write("add an event", |tx| {
            tx.execute(
                "INSERT INTO events (session_id, at_unix_ms, kind, text, context) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    session,
                    event.at_unix_ms,
                    Word(event.kind),
                    event.text,
                    event.context.map(Count)
                ],
            )
            .map(drop)
        })
    }

    /// All events of a session by time.
    pub fn events(&self, session: i64) -> Result<Vec<Event>, StoreError> {
        self.read("read the events", |conn| {
            conn.prepare_cached(
                "SELECT at_unix_ms, kind, text, context FROM events WHERE session_id = ?1 ORDER BY at_unix_ms, id",
            )?
            .query_map([session], |row| {
                Ok(Event {
                    at_unix_ms: row.get(0)?,
                    kind: row.get::<_, Word<EventKind>>(1)?.0,
                    text: row.get(2)?,
                    context: row.get::<_, Option<Count>>(3)?.map(|count| count.0),
                })
            })?
            .collect()
        })
    }

    /// Keeps a decision; gives its id.
    pub fn add_decision(&mut self, decision: &Decision) -> Result<i64, StoreError> {
        self.write("record the decision", |tx| {
            tx.execute(
                "INSERT INTO decisions (session_id, at_unix_ms, user, host, profile, value, previous, engine, engine_version, model,
                     simulated, evidence)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                params![
                    decision.session,
                    decision.at_unix_ms,
                    decision.user,
                    decision.host,
                    decision.profile,
                    Count(decision.value),
                    decision.previous.map(Count),
                    decision.engine.map(Word),
                    decision.engine_version,
                    decision.model,
                    decision.simulated,
                    Json(&decision.evidence)
                ],
            )?;
            Ok(tx.last_insert_rowid())
        })
    }

    /// The newest `limit` decisions, newest first.
    pub fn decisions(&self, limit: u32) -> Result<Vec<Decision>, StoreError> {
        self.read("list the decisions", |conn| {
            conn.prepare_cached(&format!(
                "{DECISIONS} ORDER BY at_unix_ms DESC, id DESC LIMIT ?1"
            ))?
            .query_map([limit], decision)?
            .collect()
        })
    }

    /// The decisions of a session by time.
    pub fn session_decisions(&self, session: i64) -> Result<Vec<Decision>, StoreError> {
        self.read("read the decisions", |conn| {
            conn.prepare_cached(&format!(
                "{DECISIONS} WHERE session_id = ?1 ORDER BY at_unix_ms, id"
            ))?
            .query_map([session], decision)?
            .collect()
        })
    }
}

const DECISIONS: &str = "SELECT session_id, at_unix_ms, user, host, profile, value, previous, engine, engine_version, model, simulated,
     evidence FROM decisions";

fn decision(row: &Row<'_>) -> rusqlite::Result<Decision> {
    Ok(Decision {
        session: row.get(0)?,
        at_unix_ms: row.get(1)?,
        user: row.get(2)?,
        host: row.get(3)?,
        profile: row.get(4)?,
        value: row.get::<_, Count>(5)?.0,
        previous: row.get::<_, Option<Count>>(6)?.map(|count| count.0),
        engine: row.get::<_, Option<Word<Kind>>>(7)?.map(|word| word.0),
        engine_version: row.get(8)?,
        model: row.get(9)?,
        simulated: row.get(10)?,
        evidence: row.get::<_, Json<serde_json::Value>>(11)?.0,
    })
}
