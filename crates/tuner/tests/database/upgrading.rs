//! Files of the first version, which had no schedules.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use weft_tuner::choices::Choices;
use weft_tuner::database::{Database, DatabaseError};

use crate::sample::{choice, folder, mix, platform, schedule, task};
use crate::worlds::content;

/// As the first version made them.
const FIRST_VERSION: [&str; 6] = [
    "CREATE TABLE platforms (id INTEGER PRIMARY KEY, chip TEXT NOT NULL, driver TEXT NOT NULL, kernels TEXT NOT NULL, \
     UNIQUE (chip, driver, kernels)) STRICT",
    "CREATE TABLE operators (id INTEGER PRIMARY KEY, operator TEXT NOT NULL, precision TEXT NOT NULL, \
     UNIQUE (operator, precision)) STRICT",
    "CREATE TABLE trials (platform INTEGER NOT NULL, operator INTEGER NOT NULL, partition_size INTEGER NOT NULL, \
     candidate TEXT NOT NULL, outcome TEXT NOT NULL, method TEXT NOT NULL, time_ns INTEGER, spread REAL, \
     interference REAL, error REAL, reason TEXT, features BLOB NOT NULL, recorded_unix_ms INTEGER NOT NULL, \
     checksum INTEGER NOT NULL, PRIMARY KEY (platform, operator, partition_size, candidate)) STRICT, WITHOUT ROWID",
    "CREATE TABLE attempts (platform INTEGER NOT NULL, operator INTEGER NOT NULL, partition_size INTEGER NOT NULL, \
     candidate TEXT NOT NULL, crashes INTEGER NOT NULL, process TEXT, started_unix_ms INTEGER NOT NULL, \
     checksum INTEGER NOT NULL, PRIMARY KEY (platform, operator, partition_size, candidate)) STRICT, WITHOUT ROWID",
    "CREATE TABLE choices (platform INTEGER NOT NULL, operator INTEGER NOT NULL, partition_size INTEGER NOT NULL, \
     candidate TEXT NOT NULL, time_ns INTEGER NOT NULL, untuned_candidate TEXT NOT NULL, \
     untuned_time_ns INTEGER NOT NULL, trials INTEGER NOT NULL, recorded_unix_ms INTEGER NOT NULL, \
     checksum INTEGER NOT NULL, PRIMARY KEY (platform, operator, partition_size)) STRICT, WITHOUT ROWID",
    "CREATE INDEX unusable ON trials (platform, operator, candidate) WHERE outcome <> 'measured'",
];

/// A file of the first version with one choice, whose row is copied from a file of this one.
fn first_version(path: &Path) {
    let (_folder, now) = folder();
    Database::open(&now).unwrap().record_choice(&task("conv", 8), &choice("a", 5)).unwrap();
    let connection = Connection::open(path).unwrap();
    for statement in FIRST_VERSION {
        connection.execute(statement, []).unwrap();
    }
    connection.execute("ATTACH ? AS now", [now.to_str().unwrap()]).unwrap();
    for table in ["platforms", "operators", "choices"] {
        connection.execute(&format!("INSERT INTO {table} SELECT * FROM now.{table}"), []).unwrap();
    }
    connection.execute("DETACH now", []).unwrap();
    connection.pragma_update(None, "application_id", 0x5745_4654).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
}

fn version(path: &Path) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn a_file_that_is_written_to_is_upgraded_and_keeps_what_it_has() {
    let (_folder, path) = folder();
    first_version(&path);
    let database = Database::open(&path).unwrap();
    assert_eq!(database.recorded_choice(&task("conv", 8)).unwrap(), Some(choice("a", 5)));
    assert!(database.recorded_schedules().unwrap().is_empty());
    database.record_schedule(&mix("a+b", 8), &schedule("[]", 5)).unwrap();
    database.check().unwrap();
    drop(database);
    assert_eq!(version(&path), 2);
    let database = Database::open_read_only(&path).unwrap();
    assert_eq!(database.recorded_schedules().unwrap().len(), 1);
}

#[test]
fn a_file_that_is_only_read_stays_as_it_is_and_has_no_schedules() {
    let (_folder, path) = folder();
    first_version(&path);
    let before = fs::read(&path).unwrap();
    let database = Database::open_read_only(&path).unwrap();
    assert_eq!(Choices::load(&database, &platform("here")).unwrap().len(), 1);
    assert_eq!(database.recorded_schedule(&mix("a+b", 8)).unwrap(), None);
    assert!(database.recorded_schedules().unwrap().is_empty());
    assert_eq!(database.summaries().unwrap()[0].schedules, 0);
    database.check().unwrap();
    let text = content(&database);
    assert!(text.starts_with("{\"weft_tuning_export\":1,\"records\":1}"), "{text}");
    let (_other_folder, other) = folder();
    assert_eq!(Database::open(&other).unwrap().merge(&database).unwrap().taken, 1);
    drop(database);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn many_may_upgrade_a_file_at_once_and_one_reads_on() {
    let (_folder, path) = folder();
    first_version(&path);
    let reader = Database::open_read_only(&path).unwrap();
    assert!(reader.recorded_schedules().unwrap().is_empty());
    std::thread::scope(|scope| {
        for units in 1..=8 {
            let path = &path;
            scope.spawn(move || {
                let database = Database::open(path).unwrap();
                database.record_schedule(&mix("a+b", units), &schedule("[]", 5)).unwrap();
            });
        }
    });
    assert_eq!(reader.recorded_schedules().unwrap().len(), 8);
    assert_eq!(reader.recorded_choices().unwrap().len(), 1);
}

#[test]
fn a_file_that_says_it_is_of_another_version_than_its_tables_is_damaged() {
    for (said, change) in [(1, None), (2, Some("DROP TABLE schedules")), (0, None), (-1, None)] {
        let (_folder, path) = folder();
        drop(Database::open(&path).unwrap());
        let connection = Connection::open(&path).unwrap();
        change.map(|change| connection.execute(change, []).unwrap());
        connection.pragma_update(None, "user_version", said).unwrap();
        drop(connection);
        for result in [Database::open(&path), Database::open_read_only(&path)] {
            assert!(matches!(result, Err(DatabaseError::Damaged { .. })), "{said}: {result:?}");
        }
    }
}
