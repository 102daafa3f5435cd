//! A report's input from the database.

use super::ReportInput;
use crate::store::{Store, StoreError};

/// Everything on record about a session; `None` if there is no such session. `production` is the profile's value now.
pub fn gather(
    store: &Store,
    session: i64,
    production: Option<u64>,
    now_unix_ms: i64,
) -> Result<Option<ReportInput>, StoreError> {
    let Some(row) = store.session(session)? else {
        return Ok(None);
    };
    Ok(Some(ReportInput {
        session: row,
        production,
        configs: store.configs(session)?,
        runs: store.session_runs(session)?,
        points: store.session_points(session)?,
        events: store.events(session)?,
        decisions: store.session_decisions(session)?,
        written_unix_ms: now_unix_ms,
        zone: jiff::tz::TimeZone::system(),
    }))
}
