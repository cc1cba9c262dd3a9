//! Choices as those see them who prepare models.

use std::time::{Duration, Instant};

use weft_device::KernelChoices;
use weft_tuner::choices::Choices;
use weft_tuner::database::{Database, Method, Outcome, TrialRecord};

use crate::sample::{choice, folder, measured, operator, platform, task};

#[test]
fn the_nearest_size_that_was_tuned_decides() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    for size in [4, 16, 100] {
        let picked = choice(&format!("for {size}"), 5);
        database.record_choice(&task("conv", size), &picked).unwrap();
    }
    let choices = Choices::load(&database, &platform("here")).unwrap();
    assert_eq!(choices.len(), 3);
    let cases = [
        (4, 4),
        (1, 4),
        (7, 4),
        (8, 4),
        (9, 16),
        (16, 16),
        (39, 16),
        (40, 16),
        (41, 100),
        (1000, 100),
    ];
    for (asked, expected) in cases {
        let candidate = choices.choice(&operator("conv"), asked).unwrap();
        assert_eq!(&*candidate, format!("for {expected}"), "a partition of {asked}");
    }
    assert_eq!(choices.choice(&operator("gemm"), 8), None);
    let mut other_precision = operator("conv");
    other_precision.precision = "f32".into();
    assert_eq!(choices.choice(&other_precision, 4), None);
}

#[test]
fn nothing_is_taken_from_another_platform() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    database.record_choice(&task("conv", 8), &choice("a", 5)).unwrap();
    let mut others = [platform("there"), platform("here"), platform("here")];
    others[1].driver = "581".into();
    others[2].kernels = "k2".into();
    for other in others {
        let choices = Choices::load(&database, &other).unwrap();
        assert!(choices.is_empty());
        assert_eq!(choices.choice(&operator("conv"), 8), None);
    }
}

#[test]
fn what_was_picked_last_is_taken() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    let conv = task("conv", 8);
    assert_eq!(database.recorded_choice(&conv).unwrap(), None);
    for candidate in ["a", "b"] {
        database.record_choice(&conv, &choice(candidate, 5)).unwrap();
    }
    assert_eq!(database.recorded_choice(&conv).unwrap(), Some(choice("b", 5)));
    assert_eq!(database.recorded_choices().unwrap(), [(conv, choice("b", 5))]);
}

#[test]
fn a_candidate_that_turned_out_to_be_unusable_is_not_named_at_that_size() {
    for outcome in [Outcome::Wrong { error: 1.0 }, Outcome::Failed("gone".into()), Outcome::Hung] {
        let (_folder, path) = folder();
        let database = Database::open(&path).unwrap();
        database.record_choice(&task("conv", 8), &choice("a", 5)).unwrap();
        database.record_choice(&task("conv", 32), &choice("b", 5)).unwrap();
        let unusable = TrialRecord::now(outcome, Method::Alone, &[]);
        database.record_trial(&task("conv", 8), "a", &unusable).unwrap();
        // Nobody picked it, so it is of no interest.
        database.record_trial(&task("conv", 8), "c", &unusable).unwrap();
        database.record_trial(&task("conv", 8), "b", &measured(9, Method::Alone)).unwrap();
        let choices = Choices::load(&database, &platform("here")).unwrap();
        let named = |size| choices.choice(&operator("conv"), size);
        assert_eq!(named(8).as_deref(), Some("b"), "the next nearest");
        assert_eq!(named(9).as_deref(), Some("a"), "nothing is known against it there");
        database.record_trial(&task("conv", 8), "b", &unusable).unwrap();
        let choices = Choices::load(&database, &platform("here")).unwrap();
        assert_eq!(choices.choice(&operator("conv"), 8), None);
    }
}

#[test]
fn ten_thousand_choices_are_loaded_at_once() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    for name in 0..2000 {
        for size in [2, 8, 16, 32, 132] {
            let task = task(&format!("conv {name}x64x56x56 3x3 + bias + relu"), size);
            database.record_choice(&task, &choice("mma 128x64x32 stages 4", 5)).unwrap();
            let failed = TrialRecord::now(Outcome::Failed("no".into()), Method::Screened, &[]);
            database.record_trial(&task, "other", &failed).unwrap();
        }
    }
    drop(database);
    let best = (0..20)
        .map(|_| {
            let start = Instant::now();
            let database = Database::open_read_only(&path).unwrap();
            let choices = Choices::load(&database, &platform("here")).unwrap();
            assert_eq!(choices.len(), 10_000);
            start.elapsed()
        })
        .min();
    let limit_ms = if cfg!(debug_assertions) { 500 } else { 50 };
    assert!(best < Some(Duration::from_millis(limit_ms)), "{best:?}");
}

#[test]
fn other_choices_have_another_version() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    let version = || Choices::load(&database, &platform("here")).unwrap().version();
    let mut versions = vec![version()];
    for (size, candidate) in [(8, "a"), (8, "b"), (16, "a")] {
        database.record_choice(&task("conv", size), &choice(candidate, 5)).unwrap();
        assert_eq!(version(), version());
        versions.push(version());
    }
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), 4);
}
