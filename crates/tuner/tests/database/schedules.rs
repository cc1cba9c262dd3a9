//! Schedules of mixes.

use rusqlite::Connection;
use weft_tuner::database::{Database, DatabaseError, Merged, RecordedSchedule, ScheduleKey};

use crate::sample::{choice, folder, mix, platform, schedule, task};
use crate::worlds::content;

#[test]
fn a_schedule_holds_for_its_mix_units_and_platform_alone() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    let key = mix("a+b", 8);
    let elsewhere = ScheduleKey { platform: platform("there"), ..key.clone() };
    assert_eq!(database.recorded_schedule(&key).unwrap(), None);
    database.record_schedule(&key, &schedule("[1]", 5)).unwrap();
    database.record_schedule(&mix("a+b", 4), &schedule("[2]", 9)).unwrap();
    assert_eq!(database.recorded_schedule(&key).unwrap(), Some(schedule("[1]", 5)));
    for other in [mix("b+a", 8), mix("a+b", 16), elsewhere] {
        assert_eq!(database.recorded_schedule(&other).unwrap(), None, "{other:?}");
    }
    database.record_schedule(&key, &schedule("[3]", 7)).unwrap();
    drop(database);
    let database = Database::open_read_only(&path).unwrap();
    let all = [(mix("a+b", 4), schedule("[2]", 9)), (key, schedule("[3]", 7))];
    assert_eq!(database.recorded_schedules().unwrap(), all);
    assert_eq!(all[0].1.gain(), 3.0);
}

#[test]
fn what_is_past_a_limit_is_refused() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    let long = "x".repeat(100_000);
    for (key, stages) in [(mix("a", 0), ""), (mix(&long, 1), ""), (mix("a", 1), &long)] {
        let result = database.record_schedule(&key, &schedule(stages, 5));
        assert!(matches!(result, Err(DatabaseError::Refused(_))), "{result:?}");
    }
    assert!(database.recorded_schedules().unwrap().is_empty());
}

#[test]
fn a_row_that_somebody_changed_is_not_used() {
    let changes = [
        "UPDATE schedules SET stages = '[2]'",
        "UPDATE schedules SET time_ns = 1",
        "UPDATE schedules SET in_turns_time_ns = -1",
        "UPDATE schedules SET units = 8",
        "UPDATE schedules SET mix = 'a+b'",
        "UPDATE platforms SET chip = 'here'",
    ];
    for change in changes {
        let (_folder, path) = folder();
        let database = Database::open(&path).unwrap();
        let mut key = mix("a+b", 8);
        match change {
            _ if change.contains("units") => key.units = 4,
            _ if change.contains("mix") => key.mix = "b+a".into(),
            _ if change.contains("chip") => key.platform = platform("there"),
            _ => {}
        }
        database.record_schedule(&key, &schedule("[1]", 5)).unwrap();
        drop(database);
        Connection::open(&path).unwrap().execute(change, []).unwrap();
        let database = Database::open_read_only(&path).unwrap();
        let found = database.recorded_schedule(&mix("a+b", 8));
        assert!(matches!(found, Err(DatabaseError::Damaged { .. })), "{change}: {found:?}");
        assert!(matches!(database.check(), Err(DatabaseError::Damaged { .. })), "{change}");
    }
}

#[test]
fn of_two_databases_the_later_schedule_stays() {
    let (_folder, path) = folder();
    let own = Database::open(&path).unwrap();
    let (_other_folder, other_path) = folder();
    let other = Database::open(&other_path).unwrap();
    let later = RecordedSchedule { recorded_unix_ms: 1_700_000_000_001, ..schedule("[2]", 9) };
    own.record_schedule(&mix("a+b", 8), &schedule("[1]", 5)).unwrap();
    other.record_schedule(&mix("a+b", 8), &later).unwrap();
    other.record_schedule(&mix("b+a", 8), &schedule("[3]", 5)).unwrap();
    assert_eq!(own.merge(&other).unwrap(), Merged { read: 2, taken: 2 });
    assert_eq!(own.recorded_schedule(&mix("a+b", 8)).unwrap(), Some(later));
    other.record_schedule(&mix("a+b", 8), &schedule("[1]", 5)).unwrap();
    assert_eq!(own.merge(&other).unwrap(), Merged { read: 2, taken: 0 });
}

const EXPORT: &str = concat!(
    r#"{"weft_tuning_export":2,"records":1}"#,
    "\n",
    r#"{"schedule":{"mix":{"chip":"here","driver":"580.1","kernels":"k1","mix":"a+b","units":8},"#,
    r#""stages":"{\"stages\":[]}","time_ns":5000,"in_turns_time_ns":15000,"recorded_unix_ms":1700000000000}}"#,
    "\n",
);

#[test]
fn schedules_are_exported_and_imported() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    assert_eq!(database.import(EXPORT.as_bytes()).unwrap(), Merged { read: 1, taken: 1 });
    let found = database.recorded_schedule(&mix("a+b", 8)).unwrap();
    assert_eq!(found, Some(schedule(r#"{"stages":[]}"#, 5)));
    assert_eq!(content(&database), EXPORT);
    for (from, to, what) in [
        ("\"units\":8", "\"units\":0", "no units"),
        ("\"units\":8", "\"units\":-8", "invalid value"),
        ("\"time_ns\":5000,", "", "missing field `time_ns`"),
        ("\"time_ns\"", "\"more\":1,\"time_ns\"", "unknown field `more`"),
    ] {
        let error = database.import(EXPORT.replace(from, to).as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("line 2") && error.contains(what), "{error}");
    }
}

#[test]
fn an_export_without_schedules_is_one_that_earlier_versions_read() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    database.record_choice(&task("conv", 8), &choice("a", 5)).unwrap();
    assert!(content(&database).starts_with("{\"weft_tuning_export\":1,"));
}
