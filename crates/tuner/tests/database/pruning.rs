//! Forgetting.

use std::fs;

use weft_tuner::database::{
    Database, Method, Outcome, Prune, Pruned, RecordedSchedule, ScheduleKey, TaskKey, TrialRecord,
};

use crate::sample::{choice, folder, measured, mix, platform, schedule, task};
use crate::worlds::content;

fn elsewhere() -> TaskKey {
    TaskKey { platform: platform("there"), ..task("gemm", 4) }
}

/// Two platforms, old and new, good and banned.
fn sample() -> (tempfile::TempDir, Database) {
    let (folder, path) = folder();
    let database = Database::open(&path).unwrap();
    let old = TrialRecord { recorded_unix_ms: 1000, ..measured(5, Method::Alone) };
    let wrong = TrialRecord::now(Outcome::Wrong { error: 1.0 }, Method::Alone, &[]);
    let conv = task("conv", 8);
    database.record_trial(&conv, "old", &old).unwrap();
    database.record_trial(&conv, "new", &measured(6, Method::Alone)).unwrap();
    database.record_trial(&conv, "wrong", &wrong).unwrap();
    database.record_trial(&elsewhere(), "other", &measured(7, Method::Alone)).unwrap();
    database.record_choice(&conv, &choice("new", 6)).unwrap();
    database.record_choice(&elsewhere(), &choice("other", 7)).unwrap();
    let there = ScheduleKey { platform: platform("there"), ..mix("a+b", 4) };
    let newer = RecordedSchedule { recorded_unix_ms: 1_700_000_000_001, ..schedule("[]", 6) };
    database.record_schedule(&mix("a+b", 8), &newer).unwrap();
    database.record_schedule(&there, &schedule("[]", 7)).unwrap();
    database.start_trial(&conv, "under way").unwrap();
    (folder, database)
}

#[test]
fn what_is_named_goes_and_the_rest_stays() {
    let (_folder, whole) = sample();
    let untouched = content(&whole);
    let before_the_choices = Prune::RecordedBefore(1001);
    let after_the_choices = Prune::RecordedBefore(1_700_000_000_001);
    let cases = [
        (vec![], Pruned { trials: 0, choices: 0, schedules: 0 }, vec![]),
        (
            vec![Prune::Platform(platform("there"))],
            Pruned { trials: 1, choices: 1, schedules: 1 },
            vec!["other"],
        ),
        (
            vec![Prune::Platform(platform("nowhere"))],
            Pruned { trials: 0, choices: 0, schedules: 0 },
            vec![],
        ),
        (vec![Prune::Banned], Pruned { trials: 1, choices: 0, schedules: 0 }, vec!["wrong"]),
        (vec![before_the_choices], Pruned { trials: 1, choices: 0, schedules: 0 }, vec!["old"]),
        (
            vec![after_the_choices.clone()],
            Pruned { trials: 1, choices: 2, schedules: 1 },
            vec!["old"],
        ),
        (
            vec![Prune::Banned, after_the_choices],
            Pruned { trials: 2, choices: 2, schedules: 1 },
            vec!["old", "wrong"],
        ),
        (
            vec![Prune::RecordedBefore(u64::MAX)],
            Pruned { trials: 4, choices: 2, schedules: 2 },
            vec!["old", "new", "wrong", "other"],
        ),
    ];
    for (what, expected, gone) in cases {
        let (_folder, database) = sample();
        assert_eq!(database.rehearse_prune(&what).unwrap(), expected, "{what:?}");
        assert_eq!(content(&database).lines().count(), untouched.lines().count());
        assert_eq!(database.prune(&what).unwrap(), expected, "{what:?}");
        let known = database.known_trials(&task("conv", 8)).unwrap();
        let others = database.known_trials(&elsewhere()).unwrap();
        let names: Vec<&str> =
            known.iter().chain(&others).map(|trial| trial.candidate.as_str()).collect();
        for name in ["old", "new", "wrong", "other", "under way"] {
            assert_eq!(names.contains(&name), !gone.contains(&name), "{what:?}: {name}");
        }
        assert_eq!(database.prune(&what).unwrap(), Pruned::default());
        database.check().unwrap();
    }
}

#[test]
fn space_goes_back_to_the_disk() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    let fill = |name: &str| {
        for candidate in 0..500 {
            let record =
                TrialRecord { features: vec![0.5; 200], ..measured(candidate, Method::Alone) };
            database.record_trial(&task(name, 8), &candidate.to_string(), &record).unwrap();
        }
    };
    fill("conv");
    assert_eq!(database.prune(&[Prune::RecordedBefore(u64::MAX)]).unwrap().trials, 500);
    let size = fs::metadata(&path).unwrap().len();
    assert!(size < 100_000, "{size} bytes are left");
    assert!(database.summaries().unwrap().is_empty(), "names go with what stood under them");
    fill("gemm");
    database.check().unwrap();
}

#[test]
fn a_platform_that_only_a_schedule_stands_under_stays_until_the_schedule_goes() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    database.record_choice(&task("conv", 8), &choice("a", 5)).unwrap();
    let newer = RecordedSchedule { recorded_unix_ms: 1_700_000_000_001, ..schedule("[]", 6) };
    database.record_schedule(&mix("a+b", 8), &newer).unwrap();
    database.prune(&[Prune::RecordedBefore(1_700_000_000_001)]).unwrap();
    assert_eq!(database.recorded_schedule(&mix("a+b", 8)).unwrap(), Some(newer));
    database.check().unwrap();
    database.prune(&[Prune::RecordedBefore(u64::MAX)]).unwrap();
    assert!(database.summaries().unwrap().is_empty());
}
