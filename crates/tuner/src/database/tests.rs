//! What shows only from inside: locks that are held for too long, disks that are full.

use std::path::PathBuf;

use tempfile::TempDir;
use weft_device::{Measurement, OperatorKey, Platform};

use super::*;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tuning.db");
    (folder, path)
}

fn task() -> TaskKey {
    let [chip, driver, kernels] = ["chip", "1", "2"].map(String::from);
    let [operator, precision] = ["conv", "f16"].map(String::from);
    let platform = Platform { chip, driver, kernels };
    TaskKey { platform, operator: OperatorKey { operator, precision }, partition_size: 8 }
}

fn measured() -> TrialRecord {
    let time = Duration::from_micros(7);
    let measurement = Measurement { time, spread: 0.01, interference: 1.0 };
    TrialRecord::now(Outcome::Measured(measurement), Method::Alone, &[0.5; 500])
}

#[test]
fn a_lock_that_is_held_for_too_long_is_an_error_and_loses_nothing() {
    let (_folder, path) = folder();
    let holder = Database::open(&path).unwrap();
    let short = Duration::from_millis(20);
    let other = Database::open_within(&path, short).unwrap();
    let held = holder.write(|_| {
        let error = other.record_trial(&task(), "a", &measured()).unwrap_err();
        let DatabaseError::Locked { waited, .. } = error else { panic!("{error}") };
        assert_eq!(waited, short);
        assert!(other.known_trials(&task()).unwrap().is_empty(), "readers do not wait for writers");
        Ok(())
    });
    held.unwrap();
    other.record_trial(&task(), "a", &measured()).unwrap();
}

#[test]
fn a_full_disk_is_an_error_and_keeps_what_was_recorded() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    database.connection.lock().unwrap().pragma_update(None, "max_page_count", 40).unwrap();
    let mut recorded = 0;
    let error = loop {
        match database.record_trial(&task(), &recorded.to_string(), &measured()) {
            Ok(()) => recorded += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, DatabaseError::Full(_)), "{error}");
    assert!(recorded > 10);
    assert_eq!(database.known_trials(&task()).unwrap().len(), recorded);
    database.connection.lock().unwrap().pragma_update(None, "max_page_count", 1000).unwrap();
    database.record_trial(&task(), "more", &measured()).unwrap();
}
