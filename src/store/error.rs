//! What can go wrong with the database, in words.

use rusqlite::ErrorCode;
use std::path::{Path, PathBuf};

/// A failed action on the database: what was tried, what happened, what to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(
        "cannot use the database {path}: a newer vramp wrote it (form {found}, this one knows forms up to {known}). It was left as it \
         is. Use the newer vramp, or another data directory (XDG_DATA_HOME)"
    )]
    Newer {
        path: PathBuf,
        found: i64,
        known: i64,
    },
    #[error(
        "cannot use {path}: it is not a database of vramp. It was left as it is. Move it away, or use another data directory \
         (XDG_DATA_HOME)"
    )]
    Foreign { path: PathBuf },
    #[error(
        "cannot write the database {path}: it is read-only for this user. Make the file and its directory writable, or use another \
         data directory (XDG_DATA_HOME)"
    )]
    ReadOnly { path: PathBuf },
    #[error(
        "cannot open the database {path}: {what}. Make its directory writable, or use another data directory (XDG_DATA_HOME)"
    )]
    Directory { path: PathBuf, what: String },
    #[error(
        "cannot {tried} in the database {path}: another program holds it. Nothing was written; try again"
    )]
    Busy { path: PathBuf, tried: &'static str },
    #[error(
        "cannot {tried} in the database {path}: the disk is full. Nothing was written; free some space"
    )]
    Full { path: PathBuf, tried: &'static str },
    #[error(
        "cannot {tried} in the database {path}: the file is damaged ({what}). Keep a copy of it, move it away, and start again"
    )]
    Damaged {
        path: PathBuf,
        tried: &'static str,
        what: String,
    },
    #[error("cannot {tried} in the database {path}: {what}")]
    Sql {
        path: PathBuf,
        tried: &'static str,
        what: String,
    },
}

impl StoreError {
    /// SQLite's error in the operator's terms.
    pub(super) fn sql(path: &Path, tried: &'static str, error: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        match error.sqlite_error_code() {
            Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { path },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => StoreError::Directory {
                path,
                what: error.to_string(),
            },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StoreError::Busy { path, tried }
            }
            Some(ErrorCode::DiskFull) => StoreError::Full { path, tried },
            Some(ErrorCode::NotADatabase) => StoreError::Foreign { path },
            Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged {
                path,
                tried,
                what: error.to_string(),
            },
            _ => StoreError::Sql {
                path,
                tried,
                what: error.to_string(),
            },
        }
    }
}
