//! Trials: what stays of several, what is banned, what is learnt from.

use std::time::Duration;

use weft_tuner::database::{
    Claim, Database, DatabaseError, KnownTrial, Method, Outcome, TrialRecord,
};

use crate::sample::{folder, measured, platform, task};

fn only(database: &Database) -> KnownTrial {
    let mut known = database.known_trials(&task("conv", 8)).unwrap();
    assert_eq!(known.len(), 1);
    known.remove(0)
}

#[test]
fn what_was_recorded_is_read_back_by_a_later_process() {
    let (_folder, path) = folder();
    let outcomes = [
        ("measured", measured(5, Method::Screened)),
        ("wrong", TrialRecord::now(Outcome::Wrong { error: 0.25 }, Method::Alone, &[])),
        ("failed", TrialRecord::now(Outcome::Failed("no room".into()), Method::Alone, &[2.0])),
        ("hung", TrialRecord::now(Outcome::Hung, Method::Screened, &[3.0])),
    ];
    let first = Database::open(&path).unwrap();
    for (candidate, record) in &outcomes {
        first.record_trial(&task("conv", 8), candidate, record).unwrap();
    }
    drop(first);
    let later = Database::open(&path).unwrap();
    let known = later.known_trials(&task("conv", 8)).unwrap();
    assert_eq!(known.len(), outcomes.len());
    for (candidate, record) in outcomes {
        let trial = known.iter().find(|trial| trial.candidate == candidate).unwrap();
        assert_eq!(trial.is_banned(), candidate != "measured");
        assert_eq!((trial.record.as_ref(), trial.crashes), (Some(&record), 0));
    }
    for other in [task("conv", 16), task("gemm", 8)] {
        assert!(later.known_trials(&other).unwrap().is_empty());
    }
    let mut elsewhere = task("conv", 8);
    elsewhere.platform = platform("there");
    assert!(later.known_trials(&elsewhere).unwrap().is_empty());
}

#[test]
fn the_record_that_is_worth_more_stays() {
    let wrong = || TrialRecord::now(Outcome::Wrong { error: 1.0 }, Method::Screened, &[]);
    // What is there, what comes, and whether it takes the place.
    let cases = [
        (measured(5, Method::Screened), measured(6, Method::Screened), true),
        (measured(5, Method::Screened), measured(6, Method::Alone), true),
        (measured(5, Method::Alone), measured(4, Method::Screened), false),
        (measured(5, Method::Alone), measured(6, Method::Alone), true),
        (measured(5, Method::Alone), wrong(), true),
        (wrong(), measured(5, Method::Alone), false),
    ];
    for (earlier, later, replaces) in cases {
        let (_folder, path) = folder();
        let database = Database::open(&path).unwrap();
        database.record_trial(&task("conv", 8), "a", &earlier).unwrap();
        database.record_trial(&task("conv", 8), "a", &later).unwrap();
        let expected = if replaces { &later } else { &earlier };
        assert_eq!(only(&database).record.as_ref(), Some(expected), "{earlier:?}, {later:?}");
    }
}

#[test]
fn a_trial_that_is_under_way_here_is_neither_banned_nor_known() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    let conv = task("conv", 8);
    assert_eq!(database.start_trial(&conv, "a").unwrap(), Claim::Ours);
    assert_eq!(database.start_trial(&conv, "a").unwrap(), Claim::Ours, "threads may try it twice");
    let again = Database::open(&path).unwrap();
    assert_eq!(again.settle().unwrap(), 0, "this process lives");
    assert_eq!((only(&again).record, only(&again).crashes), (None, 0));
    database.withdraw_trial(&conv, "a").unwrap();
    assert!(database.known_trials(&conv).unwrap().is_empty());
}

#[test]
fn models_learn_from_what_was_measured_on_their_platform() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    let mut elsewhere = task("conv", 8);
    elsewhere.platform = platform("there");
    let wrong = TrialRecord::now(Outcome::Wrong { error: 1.0 }, Method::Alone, &[9.0]);
    database.record_trial(&task("conv", 8), "a", &measured(5, Method::Screened)).unwrap();
    database.record_trial(&task("gemm", 16), "b", &measured(7, Method::Alone)).unwrap();
    database.record_trial(&task("gemm", 16), "c", &wrong).unwrap();
    database.record_trial(&elsewhere, "a", &measured(9, Method::Alone)).unwrap();
    let mut learnt = database.measured_trials(&platform("here")).unwrap();
    learnt.sort_by_key(|trial| trial.partition_size);
    let seen: Vec<_> = learnt
        .iter()
        .map(|trial| (trial.operator.operator.as_str(), trial.partition_size, trial.time))
        .collect();
    let (five, seven) = (Duration::from_micros(5), Duration::from_micros(7));
    assert_eq!(seen, [("conv", 8, five), ("gemm", 16, seven)]);
    assert_eq!(learnt[1].features, [1.0, 7.0]);
    assert!(database.measured_trials(&platform("nowhere")).unwrap().is_empty());
}

#[test]
fn what_is_not_finite_is_kept_as_not_a_number_and_long_reasons_are_cut() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    let conv = task("conv", 8);
    let error = f64::INFINITY;
    let record = TrialRecord::now(Outcome::Wrong { error }, Method::Alone, &[f32::NAN, -0.0]);
    database.record_trial(&conv, "a", &record).unwrap();
    let kept = only(&database).record.unwrap();
    assert!(matches!(kept.outcome, Outcome::Wrong { error } if error.is_nan()));
    assert!(kept.features[0].is_nan() && kept.features[1].is_sign_positive());

    let reason = "ä".repeat(10_000);
    let record = TrialRecord::now(Outcome::Failed(reason.clone()), Method::Alone, &[]);
    let gemm = task("gemm", 8);
    database.record_trial(&gemm, "a", &record).unwrap();
    let kept = database.known_trials(&gemm).unwrap().remove(0).record.unwrap();
    let Outcome::Failed(kept) = kept.outcome else { panic!("{kept:?}") };
    assert!(reason.starts_with(&kept) && kept.len() == 1024);
}

#[test]
fn what_is_past_a_limit_is_refused() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    let record = measured(5, Method::Alone);
    let long = "x".repeat(1 << 20);
    let many = TrialRecord { features: vec![0.0; 1 << 20], ..record.clone() };
    let refused = [
        database.record_trial(&task("conv", 0), "a", &record),
        database.record_trial(&task("conv", usize::MAX), "a", &record),
        database.record_trial(&task(&long, 8), "a", &record),
        database.record_trial(&task("conv", 8), &long, &record),
        database.record_trial(&task("conv", 8), "a", &many),
        database.start_trial(&task("conv", 8), &long).map(|_| ()),
        database.known_trials(&task("conv", usize::MAX)).map(|_| ()),
    ];
    for result in refused {
        assert!(matches!(result, Err(DatabaseError::Refused(_))), "{result:?}");
    }
}
