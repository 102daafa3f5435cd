//! What a session leaves behind: one SQLite file with sessions, tasks, configurations tried, runs, points, requests, memory history,
//! events and decisions.
//!
//! [`Store`] is one connection with blocking calls; its owner runs it on a thread of its own. Every call is one transaction that is on
//! the disk when the call returns, so that a crash loses only what was not handed over yet. Other processes may read and write the same
//! file meanwhile.

mod error;
mod evidence;
mod history;
mod place;
mod record;
mod requests;
mod runs;
mod schema;
mod secrets;
mod session;
mod value;

pub use error::StoreError;
pub use history::{Band, MemorySample};
pub use record::{Decision, Event, EventKind};
pub use runs::{Ending, NewRun, RunRow, StoredPoint};
pub use secrets::launch as without_secrets;
pub use session::{NewSession, SessionRow};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a call waits for another process that writes.
const BUSY: Duration = Duration::from_secs(5);

/// The write-ahead log is cut back to this after a checkpoint, bytes.
const WAL_LIMIT: i64 = 4 << 20;

/// How SQLite keeps a transaction whole. Writing ahead lets others read meanwhile, by shared memory that network file systems lack.
#[derive(Debug, Clone, Copy)]
enum Journal {
    WriteAhead,
    Rollback,
}

impl Journal {
    /// Brings the database to this kind of journal, unless it has it. While others are changing it, SQLite reports "busy" at once and
    /// not after the waiting time, so the waiting is done here.
    fn choose(self, conn: &Connection) -> rusqlite::Result<()> {
        let mode = match self {
            Journal::WriteAhead => "WAL",
            Journal::Rollback => "DELETE",
        };
        let until = Instant::now() + BUSY;
        loop {
            match conn.pragma_update_and_check(None, "journal_mode", mode, |_| Ok(())) {
                Err(error)
                    if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                        && Instant::now() < until =>
                {
                    std::thread::sleep(Duration::from_millis(10));
                }
                result => return result,
            }
        }
    }
}

/// One connection to the database.
#[derive(Debug)]
pub struct Store {
    conn: Connection,
    path: PathBuf,
}

impl Store {
    /// Opens the database at `path`, makes it (and its directory) if there is none, and brings an older one to the present form.
    ///
    /// # Errors
    /// A database of a newer version, or a file that is something else, is refused and left as it is. So is one that cannot be
    /// written.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        place::prepare(path)?;
        let journal = if place::is_network(path) {
            Journal::Rollback
        } else {
            Journal::WriteAhead
        };
        Self::open_with(path, journal)
    }

    fn open_with(path: &Path, journal: Journal) -> Result<Store, StoreError> {
        let fail = |tried: &'static str| move |error| StoreError::sql(path, tried, error);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(path, flags).map_err(fail("open it"))?;
        conn.busy_timeout(BUSY)
            .map_err(fail("set the waiting time"))?;
        schema::check(&conn, path)?;
        // SQLite opens a file that it may not write for reading, without a word.
        if conn.is_readonly("main").map_err(fail("open it"))? {
            return Err(StoreError::ReadOnly {
                path: path.to_path_buf(),
            });
        }
        journal.choose(&conn).map_err(fail("choose the journal"))?;
        conn.pragma_update(None, "synchronous", "FULL")
            .and_then(|()| conn.pragma_update(None, "foreign_keys", true))
            .and_then(|()| {
                conn.pragma_update_and_check(None, "journal_size_limit", WAL_LIMIT, |_| Ok(()))
            })
            .map_err(fail("set it up"))?;
        let mut store = Store {
            conn,
            path: path.to_path_buf(),
        };
        schema::migrate(&mut store)?;
        Ok(store)
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One transaction that writes; `tried` completes "cannot …".
    fn write<T>(
        &mut self,
        tried: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let Store { conn, path } = self;
        conn.transaction_with_behavior(TransactionBehavior::Immediate)
            .and_then(|tx| {
                let value = work(&tx)?;
                tx.commit()?;
                Ok(value)
            })
            .map_err(|error| StoreError::sql(path, tried, error))
    }

    /// One look at the database, at one moment of it; `tried` completes "cannot …".
    fn read<T>(
        &self,
        tried: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.conn
            .unchecked_transaction()
            .and_then(|tx| work(&tx))
            .map_err(|error| StoreError::sql(&self.path, tried, error))
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_disk;
