//! Opening a file, whatever it may be.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::error::Fault;
use super::schema::State;
use super::{Database, DatabaseError, location, schema};

/// How long another process's transaction is waited for. Transactions take a fraction of a millisecond.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// How long to leave others alone where the database cannot wait for them by itself.
const PAUSE: Duration = Duration::from_millis(2);

impl Database {
    /// Where the database lies unless it is named: `WEFT_TUNING_DB`, or `tuning.db` in `WEFT_CACHE_DIR`, or in `weft` in
    /// the user's folder of caches.
    pub fn default_path() -> Result<PathBuf, DatabaseError> {
        location::of_process().ok_or(DatabaseError::NoFolder)
    }

    /// Opens a database for reading and writing, making the file and its folder where there are none, and the tables that a
    /// file of an earlier version lacks. Trials whose process has ended in the middle are counted as crashes.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        Self::open_within(path, MAX_WAIT)
    }

    pub(super) fn open_within(path: &Path, max_wait: Duration) -> Result<Self, DatabaseError> {
        let at = |fault: Fault| fault.at(path, max_wait);
        let unwritable =
            |reason: String| DatabaseError::Unwritable { path: path.to_path_buf(), reason };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| unwritable(error.to_string()))?;
        }
        look(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut connection = connect(path, flags, max_wait).map_err(at)?;
        if connection.is_readonly("main").map_err(Fault::from).map_err(at)? {
            return Err(unwritable("the file is read-only".into()));
        }
        // Beside the file others are written, which a folder may not allow.
        let state =
            schema::state(&mut connection).map_err(|fault| match fault.at(path, max_wait) {
                DatabaseError::Unusable { reason, .. } => unwritable(reason),
                error => error,
            })?;
        if !is_usable(&state, path)? {
            schema::prepare(&connection).map_err(at)?;
        }
        write_ahead(&connection, max_wait).map_err(at)?;
        if state != State::Ready {
            let state = schema::complete(&mut connection).map_err(at)?;
            is_usable(&state, path)?;
        }
        let database = Self::of(path, max_wait, connection);
        database.settle()?;
        Ok(database)
    }

    /// Opens a database for reading; its folder may be read-only too, and the file of an earlier version.
    pub fn open_read_only(path: &Path) -> Result<Self, DatabaseError> {
        look(path)?;
        if !path.exists() {
            return Err(DatabaseError::Missing(path.to_path_buf()));
        }
        let at = |fault: Fault| fault.at(path, MAX_WAIT);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let open = |name: &Path, flags| {
            let mut connection = connect(name, flags, MAX_WAIT)?;
            let state = schema::state(&mut connection)?;
            Ok::<_, Fault>((connection, state))
        };
        let (connection, state) = match open(path, flags) {
            Err(Fault::Engine(error)) if needs_immutable(&error, path) => {
                open(&immutable(path), flags | OpenFlags::SQLITE_OPEN_URI).map_err(at)?
            }
            opened => opened.map_err(at)?,
        };
        if !is_usable(&state, path)? {
            return Err(DatabaseError::Missing(path.to_path_buf()));
        }
        Ok(Self::of(path, MAX_WAIT, connection))
    }
}

/// Refuses what cannot be a database, before the engine would take a short file for an empty one and overwrite it. The file
/// is not opened for that: closing it would release the locks that other handles in this process hold on it.
fn look(path: &Path) -> Result<(), DatabaseError> {
    const MIN_BYTES: u64 = 512;
    let unusable = |reason: String| DatabaseError::Unusable { path: path.to_path_buf(), reason };
    match fs::metadata(path) {
        Ok(data) if !data.is_file() => Err(unusable("it is not a file".into())),
        Ok(data) if (1..MIN_BYTES).contains(&data.len()) => {
            Err(DatabaseError::not_a_database(path))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(error.to_string())),
        _ => Ok(()),
    }
}

fn connect(path: &Path, flags: OpenFlags, max_wait: Duration) -> Result<Connection, Fault> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(max_wait)?;
    // The file may come from anywhere: what it says of itself is not believed.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    // With a write-ahead log this keeps the file whole when power is lost, without waiting for the disk at every commit.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(connection)
}

/// Has changes written to a log first, so that readers and a writer do not wait for each other.
fn write_ahead(connection: &Connection, max_wait: Duration) -> Result<(), Fault> {
    let start = Instant::now();
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            // The change needs the file to itself, and is refused at once where waiting might never end.
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && start.elapsed() < max_wait =>
            {
                std::thread::sleep(PAUSE);
            }
            result => return Ok(result?),
        }
    }
}

/// Whether there are tables; an error where the file is something else.
fn is_usable(state: &State, path: &Path) -> Result<bool, DatabaseError> {
    let path = path.to_path_buf();
    match *state {
        State::Ready | State::Older(_) => Ok(true),
        State::Empty => Ok(false),
        State::Newer(found) => {
            Err(DatabaseError::NewerSchema { path, found, known: schema::VERSION })
        }
        State::Foreign => Err(DatabaseError::Foreign(path)),
    }
}

/// Whether reading failed for want of a place to coordinate with writers in, and there can be none to coordinate with.
fn needs_immutable(error: &rusqlite::Error, path: &Path) -> bool {
    let is_refused =
        matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly));
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    is_refused && fs::metadata(log).map_or(true, |data| data.len() == 0)
}

/// A file that nobody changes, as the engine is told of it.
fn immutable(path: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let mut name = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                name.push(byte.into());
            }
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name.push_str("?immutable=1");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_survive_as_addresses() {
        let name = immutable(Path::new("/a b/ä?#%.db"));
        assert_eq!(name.to_str(), Some("file:/a%20b/%C3%A4%3F%23%25.db?immutable=1"));
    }
}
