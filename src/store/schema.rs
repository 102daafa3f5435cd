//! The tables, and how a database comes from one form to the next.

use super::{Store, StoreError};
use rusqlite::Connection;
use std::path::Path;

/// Marks a file as a database of vramp: "vrmp".
const APPLICATION_ID: i64 = 0x7672_6D70;

/// One step per form, in order. A step that was ever released is never changed; a new form is a new step.
const STEPS: &[&str] = &[
    include_str!("form_1.sql"),
    include_str!("form_2.sql"),
    include_str!("form_3.sql"),
];

fn known() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// Refuses what a newer version or another program wrote, before anything is written.
pub(super) fn check(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    // One transaction: another process may be bringing the same new file to its form just now.
    let look = || {
        let tx = conn.unchecked_transaction()?;
        let number = |sql| tx.query_row(sql, [], |row| row.get::<_, i64>(0));
        Ok((
            number("PRAGMA user_version")?,
            number("PRAGMA application_id")?,
            number("SELECT count(*) FROM sqlite_schema")?,
        ))
    };
    let (found, id, tables) =
        look().map_err(|error| StoreError::sql(path, "read its form", error))?;
    let empty = id == 0 && found == 0 && tables == 0;
    if id != APPLICATION_ID && !empty {
        return Err(StoreError::Foreign {
            path: path.to_path_buf(),
        });
    }
    if found > known() {
        return Err(StoreError::Newer {
            path: path.to_path_buf(),
            found,
            known: known(),
        });
    }
    Ok(())
}

/// Takes the steps that are missing, all or none. A second process that opens the same old file waits and finds them taken.
pub(super) fn migrate(store: &mut Store) -> Result<(), StoreError> {
    if store.read("read its form", taken)? >= STEPS.len() {
        return Ok(());
    }
    store.write("bring it to the present form", |tx| {
        for step in STEPS.iter().skip(taken(tx)?) {
            tx.execute_batch(step)?;
        }
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", known())
    })
}

/// How many steps the database has taken. [`check`] has refused one that took more than there are.
fn taken(conn: &Connection) -> rusqlite::Result<usize> {
    conn.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0))
        .map(|form| usize::try_from(form).unwrap_or(usize::MAX))
}
