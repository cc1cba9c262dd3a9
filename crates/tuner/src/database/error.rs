//! Why the tuning database does not do what is asked.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::ErrorCode;

/// Why the tuning database does not do what is asked. Whatever it says, no file was overwritten.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The environment names no folder that a database could lie in.
    #[error(
        "there is no folder for the tuning database: set WEFT_TUNING_DB to a file, or WEFT_CACHE_DIR to a folder"
    )]
    NoFolder,
    /// There is no such file.
    #[error("there is no tuning database at {}: `weft tune` makes one", .0.display())]
    Missing(PathBuf),
    /// The file is no database, or is damaged.
    #[error(
        "the tuning database {0} is damaged: {what}. It is left as it is and nothing in it is used; set it and {0}-wal \
         aside (rename them), then tune again or import an export",
        path.display()
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The file is a database, of something else.
    #[error("{} is a database of something else: name another file, by WEFT_TUNING_DB for example", .0.display())]
    Foreign(PathBuf),
    /// A later version wrote the file.
    #[error(
        "the tuning database {} has schema {found}, and this version knows those up to {known}: take the newer version, or \
         name another file by WEFT_TUNING_DB",
        path.display()
    )]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// The version of its schema.
        found: i64,
        /// The newest version that can be read here.
        known: i64,
    },
    /// The file can be read, if anything, and not written.
    #[error(
        "the tuning database {} cannot be written: {reason}. What is in it can be used all the same; to add to it, make \
         the file and its folder writable, or name another file by WEFT_TUNING_DB",
        path.display()
    )]
    Unwritable {
        /// The database.
        path: PathBuf,
        /// What stands against it.
        reason: String,
    },
    /// There is no room for more.
    #[error(
        "there is no room for the tuning database {}: free some space on its disk, or name a file elsewhere by \
         WEFT_TUNING_DB; what was recorded before is kept",
        .0.display()
    )]
    Full(PathBuf),
    /// Another process has been writing for too long.
    #[error(
        "the tuning database {} was locked by another process for more than {waited:?}: see who holds it (`fuser` names the \
         process), then try again",
        path.display()
    )]
    Locked {
        /// The database.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The file cannot be opened or read.
    #[error("cannot use the tuning database {}: {reason}", path.display())]
    Unusable {
        /// The database.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// What was to be recorded is past a limit.
    #[error("cannot record this in the tuning database: {0}")]
    Refused(String),
    /// A file that was to be imported is not what an export writes.
    #[error("line {line}: {what}; nothing was imported")]
    Import {
        /// Counted from one.
        line: usize,
        /// What is wrong there.
        what: String,
    },
    /// An export cannot be read or written.
    #[error("cannot read or write the export: {0}")]
    Export(#[from] io::Error),
}

impl DatabaseError {
    pub(super) fn not_a_database(path: &Path) -> Self {
        Self::Damaged { path: path.to_path_buf(), what: "it is not a database at all".into() }
    }
}

/// What went wrong inside, before the file's name is added to it.
#[derive(Debug)]
pub(super) enum Fault {
    Engine(rusqlite::Error),
    Damaged(String),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error)
    }
}

impl Fault {
    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }

    /// The error as callers see it. `waited` is how long locks are waited for.
    pub(super) fn at(self, path: &Path, waited: Duration) -> DatabaseError {
        let path = path.to_path_buf();
        let error = match self {
            Self::Damaged(what) => return DatabaseError::Damaged { path, what },
            Self::Engine(error) => error,
        };
        let reason = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt) => DatabaseError::Damaged { path, what: reason },
            Some(ErrorCode::NotADatabase) => DatabaseError::not_a_database(&path),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                DatabaseError::Locked { path, waited }
            }
            Some(ErrorCode::ReadOnly) => DatabaseError::Unwritable { path, reason },
            Some(ErrorCode::DiskFull) => DatabaseError::Full(path),
            Some(_) => DatabaseError::Unusable { path, reason },
            // The columns have declared types, so a value of another type is not what was written.
            None => DatabaseError::Damaged { path, what: reason },
        }
    }
}
