//! Databases with anything in them, for properties: few names, so that records meet, and any values.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;
use weft_device::{Measurement, OperatorKey, Platform};
use weft_tuner::database::{
    Choice, Database, Method, Outcome, RecordedSchedule, ScheduleKey, TaskKey, TrialRecord,
};

#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Trial(TaskKey, String, TrialRecord),
    Crashes(TaskKey, String, u32),
    Choice(TaskKey, Choice),
    Schedule(ScheduleKey, RecordedSchedule),
}

/// What a database holds.
pub(crate) fn world() -> impl Strategy<Value = Vec<Entry>> {
    let trial = (task(), name(), record())
        .prop_map(|(task, candidate, record)| Entry::Trial(task, candidate, record));
    let crashes = (task(), name(), 1..4u32)
        .prop_map(|(task, candidate, crashes)| Entry::Crashes(task, candidate, crashes));
    let choice = (task(), choice()).prop_map(|(task, choice)| Entry::Choice(task, choice));
    let schedule = (mix(), schedule()).prop_map(|(key, found)| Entry::Schedule(key, found));
    vec(prop_oneof![trial, crashes, choice, schedule], 0..24)
}

/// A database with these entries, in a folder that goes when the first value does.
pub(crate) fn database(entries: &[Entry]) -> (TempDir, Database) {
    // In memory where that can be: the many small files of a property wait for no disk.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let database = Database::open(&folder.path().join("tuning.db")).unwrap();
    for entry in entries {
        match entry {
            Entry::Trial(task, candidate, record) => {
                database.record_trial(task, candidate, record).unwrap();
            }
            Entry::Choice(task, choice) => database.record_choice(task, choice).unwrap(),
            Entry::Schedule(key, found) => database.record_schedule(key, found).unwrap(),
            Entry::Crashes(task, candidate, crashes) => {
                let text = serde_json::json!({"crashes": {
                    "task": {
                        "chip": task.platform.chip,
                        "driver": task.platform.driver,
                        "kernels": task.platform.kernels,
                        "operator": task.operator.operator,
                        "precision": task.operator.precision,
                        "partition_size": task.partition_size,
                    },
                    "candidate": candidate,
                    "crashes": crashes,
                }});
                let text = format!("{{\"weft_tuning_export\":1,\"records\":1}}\n{text}\n");
                database.import(text.as_bytes()).unwrap();
            }
        }
    }
    (folder, database)
}

/// All that a database holds, in one text.
pub(crate) fn content(database: &Database) -> String {
    let mut text = Vec::new();
    database.export(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a".to_string()), Just("b \"quoted\"\n\u{0}ä".to_string())]
}

fn task() -> impl Strategy<Value = TaskKey> {
    (name(), name(), prop_oneof![Just(1), Just(8), Just(u32::MAX as usize)]).prop_map(
        |(chip, operator, partition_size)| TaskKey {
            platform: Platform { chip, driver: "1".into(), kernels: "2".into() },
            operator: OperatorKey { operator, precision: "f16".into() },
            partition_size,
        },
    )
}

fn record() -> impl Strategy<Value = TrialRecord> {
    let measured = (any::<u64>(), any::<f64>(), any::<f64>()).prop_map(
        |(nanoseconds, spread, interference)| {
            let time = Duration::from_nanos(nanoseconds);
            Outcome::Measured(Measurement { time, spread, interference })
        },
    );
    let outcome = prop_oneof![
        3 => measured,
        1 => any::<f64>().prop_map(|error| Outcome::Wrong { error }),
        1 => ".{0,20}".prop_map(Outcome::Failed),
        1 => Just(Outcome::Hung),
    ];
    let method = prop_oneof![Just(Method::Screened), Just(Method::Alone)];
    (outcome, method, vec(any::<f32>(), 0..4), 0..3u64).prop_map(
        |(outcome, method, features, recorded_unix_ms)| TrialRecord {
            outcome,
            method,
            features,
            recorded_unix_ms,
        },
    )
}

fn choice() -> impl Strategy<Value = Choice> {
    (name(), any::<u64>(), name(), 0..3u32, 0..3u64).prop_map(
        |(candidate, nanoseconds, untuned_candidate, trials, recorded_unix_ms)| Choice {
            candidate,
            time: Duration::from_nanos(nanoseconds),
            untuned_candidate,
            untuned_time: Duration::from_nanos(nanoseconds / 2),
            trials,
            recorded_unix_ms,
        },
    )
}

fn mix() -> impl Strategy<Value = ScheduleKey> {
    (task(), name(), prop_oneof![Just(1), Just(u32::MAX)])
        .prop_map(|(TaskKey { platform, .. }, mix, units)| ScheduleKey { platform, mix, units })
}

fn schedule() -> impl Strategy<Value = RecordedSchedule> {
    (name(), any::<u64>(), 0..3u64).prop_map(|(stages, nanoseconds, recorded_unix_ms)| {
        RecordedSchedule {
            stages,
            time: Duration::from_nanos(nanoseconds),
            in_turns_time: Duration::from_nanos(nanoseconds / 2),
            recorded_unix_ms,
        }
    })
}
