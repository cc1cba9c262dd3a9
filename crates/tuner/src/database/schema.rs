//! The tables of the tuning database, and whether a file has them.

use std::ops::RangeInclusive;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::error::Fault;

/// The version of the tables below.
pub(super) const VERSION: i64 = 2;
/// Says of a file that it is a tuning database: `WEFT` in ASCII.
const APPLICATION: i64 = 0x5745_4654;

/// Every row carries a checksum of itself and of the names that its numbers stand for, so that one that was damaged on disk
/// is not taken for another. Before each the version that brought it.
const TABLES: [(i64, &str); 6] = [
    (
        1,
        "CREATE TABLE platforms (id INTEGER PRIMARY KEY, chip TEXT NOT NULL, driver TEXT NOT NULL, kernels TEXT NOT NULL, \
     UNIQUE (chip, driver, kernels)) STRICT",
    ),
    (
        1,
        "CREATE TABLE operators (id INTEGER PRIMARY KEY, operator TEXT NOT NULL, precision TEXT NOT NULL, \
     UNIQUE (operator, precision)) STRICT",
    ),
    (
        1,
        "CREATE TABLE trials (platform INTEGER NOT NULL, operator INTEGER NOT NULL, partition_size INTEGER NOT NULL, \
     candidate TEXT NOT NULL, outcome TEXT NOT NULL, method TEXT NOT NULL, time_ns INTEGER, spread REAL, \
     interference REAL, error REAL, reason TEXT, features BLOB NOT NULL, recorded_unix_ms INTEGER NOT NULL, \
     checksum INTEGER NOT NULL, PRIMARY KEY (platform, operator, partition_size, candidate)) STRICT, WITHOUT ROWID",
    ),
    (
        1,
        "CREATE TABLE attempts (platform INTEGER NOT NULL, operator INTEGER NOT NULL, partition_size INTEGER NOT NULL, \
     candidate TEXT NOT NULL, crashes INTEGER NOT NULL, process TEXT, started_unix_ms INTEGER NOT NULL, \
     checksum INTEGER NOT NULL, PRIMARY KEY (platform, operator, partition_size, candidate)) STRICT, WITHOUT ROWID",
    ),
    (
        1,
        "CREATE TABLE choices (platform INTEGER NOT NULL, operator INTEGER NOT NULL, partition_size INTEGER NOT NULL, \
     candidate TEXT NOT NULL, time_ns INTEGER NOT NULL, untuned_candidate TEXT NOT NULL, \
     untuned_time_ns INTEGER NOT NULL, trials INTEGER NOT NULL, recorded_unix_ms INTEGER NOT NULL, \
     checksum INTEGER NOT NULL, PRIMARY KEY (platform, operator, partition_size)) STRICT, WITHOUT ROWID",
    ),
    (
        2,
        "CREATE TABLE schedules (platform INTEGER NOT NULL, mix TEXT NOT NULL, units INTEGER NOT NULL, \
     stages TEXT NOT NULL, time_ns INTEGER NOT NULL, in_turns_time_ns INTEGER NOT NULL, \
     recorded_unix_ms INTEGER NOT NULL, checksum INTEGER NOT NULL, \
     PRIMARY KEY (platform, mix, units)) STRICT, WITHOUT ROWID",
    ),
];

/// So that what must not be used is found without looking at all that may.
const INDICES: [(i64, &str); 1] = [(
    1,
    "CREATE INDEX unusable ON trials (platform, operator, candidate) WHERE outcome <> 'measured'",
)];

/// What makes the tables and indices that came with some versions.
fn statements(versions: RangeInclusive<i64>) -> impl Iterator<Item = &'static str> {
    let all = TABLES.into_iter().chain(INDICES);
    all.filter(move |(since, _)| versions.contains(since)).map(|(_, statement)| statement)
}

/// What a file is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A database with nothing in it, not even tables.
    Empty,
    /// A tuning database as this version writes it.
    Ready,
    /// A tuning database of an earlier version, which lacks what came later.
    Older(i64),
    /// A tuning database of a later version.
    Newer(i64),
    /// A database of something else.
    Foreign,
}

/// What the file is that a connection is open to; a fault where it claims to be what it is not.
pub(super) fn state(connection: &mut Connection) -> Result<State, Fault> {
    state_within(&connection.transaction()?)
}

/// Sees one state of a file that another process may just be making.
fn state_within(transaction: &Transaction<'_>) -> Result<State, Fault> {
    let pragma = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = (pragma("application_id")?, pragma("user_version")?);
    let mut statement =
        transaction.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY sql")?;
    let found = statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    if application != APPLICATION {
        let is_empty = application == 0 && version == 0 && found.is_empty();
        return Ok(if is_empty { State::Empty } else { State::Foreign });
    }
    if version > VERSION {
        return Ok(State::Newer(version));
    }
    let mut expected: Vec<&str> = statements(1..=version).collect();
    expected.sort_unstable();
    if version < 1 || found != expected {
        return Err(Fault::damaged("its tables are not those of a tuning database"));
    }
    Ok(if version == VERSION { State::Ready } else { State::Older(version) })
}

/// Settles what can be settled only before anything is in the file.
pub(super) fn prepare(connection: &Connection) -> Result<(), Fault> {
    // Lets `prune` hand space back.
    Ok(connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?)
}

/// Makes the tables that a file lacks, unless another process has just done so; what the file is then.
pub(super) fn complete(connection: &mut Connection) -> Result<State, Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let has = match state_within(&transaction)? {
        State::Empty => 0,
        State::Older(version) => version,
        settled => return Ok(settled),
    };
    for statement in statements(has + 1..=VERSION) {
        transaction.execute(statement, [])?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(State::Ready)
}
