//! Files that are not what they should be.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use weft_tuner::choices::Choices;
use weft_tuner::database::{Database, DatabaseError};

use crate::sample::{choice, folder, platform, task};

#[test]
fn a_file_that_is_no_database_is_named_and_left_alone() {
    let zeros = [0; 4096];
    let letter = "Not a database, but a letter. ".repeat(100);
    let cut = &b"SQLite format 3\0"[..];
    for content in [&b"x"[..], b"short", &zeros, cut, letter.as_bytes()] {
        let (_folder, path) = folder();
        fs::write(&path, content).unwrap();
        for result in [Database::open(&path), Database::open_read_only(&path)] {
            let error = result.unwrap_err();
            assert!(matches!(error, DatabaseError::Damaged { .. }), "{error}");
            let message = error.to_string();
            assert!(message.contains(path.to_str().unwrap()) && message.contains("aside"));
        }
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[test]
fn an_empty_file_becomes_a_database_when_it_is_opened_for_writing() {
    let (_folder, path) = folder();
    fs::write(&path, "").unwrap();
    let error = Database::open_read_only(&path).unwrap_err();
    assert!(matches!(error, DatabaseError::Missing(_)), "{error}");
    Database::open(&path).unwrap().record_choice(&task("conv", 8), &choice("a", 5)).unwrap();
    let database = Database::open_read_only(&path).unwrap();
    assert_eq!(Choices::load(&database, &platform("here")).unwrap().len(), 1);
}

#[test]
fn a_database_of_something_else_is_left_alone() {
    let (_folder, path) = folder();
    Connection::open(&path).unwrap().execute("CREATE TABLE songs (title TEXT)", []).unwrap();
    let before = fs::read(&path).unwrap();
    for result in [Database::open(&path), Database::open_read_only(&path)] {
        assert!(matches!(result, Err(DatabaseError::Foreign(_))), "{result:?}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_schema_of_a_later_version_is_left_alone() {
    let (_folder, path) = folder();
    drop(Database::open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 7).unwrap();
    for result in [Database::open(&path), Database::open_read_only(&path)] {
        let Err(DatabaseError::NewerSchema { found, known, .. }) = result else {
            panic!("{result:?}")
        };
        assert_eq!((found, known), (7, 2));
    }
}

#[test]
fn tables_that_somebody_changed_are_not_used() {
    let changes = [
        "DROP TABLE choices",
        "ALTER TABLE choices ADD COLUMN more TEXT",
        "CREATE TRIGGER t AFTER INSERT ON choices BEGIN DELETE FROM choices; END",
        "CREATE TABLE songs (title TEXT)",
    ];
    for change in changes {
        let (_folder, path) = folder();
        drop(Database::open(&path).unwrap());
        Connection::open(&path).unwrap().execute(change, []).unwrap();
        let result = Database::open(&path);
        assert!(matches!(result, Err(DatabaseError::Damaged { .. })), "{change}: {result:?}");
    }
}

#[test]
fn a_row_that_somebody_changed_is_not_used() {
    let changes = [
        "UPDATE choices SET candidate = 'b'",
        "UPDATE choices SET partition_size = 9",
        "UPDATE choices SET time_ns = -1",
        "UPDATE operators SET operator = 'gemm'",
        "UPDATE platforms SET chip = 'here' WHERE chip = 'there'",
        "DELETE FROM operators",
    ];
    for change in changes {
        let (_folder, path) = folder();
        let database = Database::open(&path).unwrap();
        let mut task = task("conv", 8);
        if change.contains("there") {
            task.platform = platform("there");
        }
        database.record_choice(&task, &choice("a", 5)).unwrap();
        drop(database);
        Connection::open(&path).unwrap().execute(change, []).unwrap();
        let database = Database::open_read_only(&path).unwrap();
        let result = Choices::load(&database, &platform("here"));
        assert!(matches!(result, Err(DatabaseError::Damaged { .. })), "{change}: {result:?}");
    }
}

#[test]
fn what_is_not_there_is_missing_and_what_cannot_be_made_is_unwritable() {
    let (_folder, path) = folder();
    let result = Database::open_read_only(&path);
    assert!(matches!(result, Err(DatabaseError::Missing(_))), "{result:?}");
    assert!(!path.exists());
    // No one may make folders there, whatever else they may do.
    let result = Database::open(Path::new("/proc/weft/tuning.db"));
    assert!(matches!(result, Err(DatabaseError::Unwritable { .. })), "{result:?}");
    for result in
        [Database::open, Database::open_read_only].map(|open| open(path.parent().unwrap()))
    {
        assert!(matches!(result, Err(DatabaseError::Unusable { .. })), "{result:?}");
    }
}
