//! Sessions and their tasks.

use super::value::{Count, Json};
use super::{Store, StoreError, history, secrets};
use crate::app::task::{Task, TaskKind, TaskState};
use crate::engine::Facts;
use crate::gpu::Card;
use rusqlite::{OptionalExtension, params};
use serde::Serialize;

/// What is known when a session begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession<'a> {
    /// Name of the profile, or of the URL that was attached to.
    pub profile: &'a str,
    /// Base URL of the server. User, password and query are not written.
    pub url: &'a str,
    pub user: &'a str,
    /// The machine that the cockpit runs on.
    pub host: &'a str,
    pub started_unix_ms: i64,
    pub simulated: bool,
}

/// A session as it was left.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionRow {
    pub id: i64,
    pub profile: String,
    pub url: String,
    pub user: String,
    pub host: String,
    /// The vramp that began it.
    pub tool_version: String,
    pub started_unix_ms: i64,
    pub simulated: bool,
    /// In the order of the list.
    pub tasks: Vec<Task>,
    /// The id for the next new task: no id of this session, not even of a deleted task, is as high.
    pub next_task: u64,
    /// What the server last said of itself.
    pub facts: Option<Facts>,
    /// The cards as last recorded.
    pub cards: Vec<Card>,
}

impl Store {
    /// Begins a session; gives its id.
    pub fn new_session(&mut self, new: &NewSession<'_>) -> Result<i64, StoreError> {
        self.write("begin a session", |tx| {
            history::thin(tx, new.started_unix_ms)?;
            tx.execute(
                "INSERT INTO sessions (profile, url, user, host, tool_version, started_unix_ms, simulated)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    new.profile,
                    secrets::url(new.url),
                    new.user,
                    new.host,
                    env!("CARGO_PKG_VERSION"),
                    new.started_unix_ms,
                    new.simulated
                ],
            )?;
            Ok(tx.last_insert_rowid())
        })
    }

    /// The newest session of a profile, with its tasks.
    pub fn latest_session(&self, profile: &str) -> Result<Option<SessionRow>, StoreError> {
        let id = self.read("find the last session", |conn| {
            conn.query_row(
                "SELECT max(id) FROM sessions WHERE profile = ?1",
                [profile],
                |row| row.get::<_, Option<i64>>(0),
            )
        })?;
        id.map_or(Ok(None), |id| self.session(id))
    }

    /// One session, with its tasks.
    pub fn session(&self, id: i64) -> Result<Option<SessionRow>, StoreError> {
        self.read("read a session", |conn| {
            let session = conn
                .query_row(
                    "SELECT id, profile, url, user, host, tool_version, started_unix_ms, simulated, next_task, facts, cards
                     FROM sessions WHERE id = ?1",
                    [id],
                    |row| {
                        Ok(SessionRow {
                            id: row.get(0)?,
                            profile: row.get(1)?,
                            url: row.get(2)?,
                            user: row.get(3)?,
                            host: row.get(4)?,
                            tool_version: row.get(5)?,
                            started_unix_ms: row.get(6)?,
                            simulated: row.get(7)?,
                            tasks: Vec::new(),
                            next_task: row.get::<_, Count>(8)?.0,
                            facts: row.get::<_, Option<Json<Facts>>>(9)?.map(|json| json.0),
                            cards: row
                                .get::<_, Option<Json<Vec<Card>>>>(10)?
                                .map_or_else(Vec::new, |json| json.0),
                        })
                    },
                )
                .optional()?;
            let Some(mut session) = session else {
                return Ok(None);
            };
            session.tasks = conn
                .prepare_cached(
                    "SELECT task_id, title, kind, state, note FROM tasks WHERE session_id = ?1 ORDER BY position",
                )?
                .query_map([id], |row| {
                    Ok(Task {
                        id: row.get::<_, Count>(0)?.0,
                        title: row.get(1)?,
                        kind: row.get::<_, Json<TaskKind>>(2)?.0,
                        state: row.get::<_, Json<TaskState>>(3)?.0,
                        note: row.get(4)?,
                    })
                })?
                .collect::<rusqlite::Result<_>>()?;
            Ok(Some(session))
        })
    }

    /// Keeps the whole task list as it is now, in place of the one before.
    pub fn save_tasks(&mut self, session: i64, tasks: &[Task]) -> Result<(), StoreError> {
        self.write("save the tasks", |tx| {
            tx.execute("DELETE FROM tasks WHERE session_id = ?1", [session])?;
            let mut insert = tx.prepare_cached(
                "INSERT INTO tasks (session_id, position, task_id, title, kind, state, note)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            for (position, task) in (0_i64..).zip(tasks) {
                insert.execute(params![
                    session,
                    position,
                    Count(task.id),
                    task.title,
                    Json(&task.kind),
                    Json(&task.state),
                    task.note
                ])?;
            }
            let next = tasks.iter().map(|task| task.id.saturating_add(1)).max();
            tx.execute(
                "UPDATE sessions SET next_task = max(next_task, ?2) WHERE id = ?1",
                params![session, Count(next.unwrap_or(1))],
            )?;
            Ok(())
        })
    }

    /// Keeps what the server says of itself.
    pub fn save_facts(&mut self, session: i64, facts: &Facts) -> Result<(), StoreError> {
        self.write("save the server's facts", |tx| {
            tx.execute(
                "UPDATE sessions SET facts = ?2 WHERE id = ?1",
                params![session, Json(facts)],
            )
            .map(drop)
        })
    }

    /// Keeps the cards of the rig, as they are now.
    pub fn save_cards(&mut self, session: i64, cards: &[Card]) -> Result<(), StoreError> {
        self.write("save the cards", |tx| {
            tx.execute(
                "UPDATE sessions SET cards = ?2 WHERE id = ?1",
                params![session, Json(&cards)],
            )
            .map(drop)
        })
    }
}
