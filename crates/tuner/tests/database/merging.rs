//! Bringing databases together.

use proptest::prelude::*;
use weft_tuner::database::{Database, Merged, Method, Outcome, TrialRecord};

use crate::sample::{choice, folder, measured, task};
use crate::worlds::{content, database, world};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_order_makes_no_difference_and_once_is_enough(one in world(), other in world(), third in world()) {
        let [(_a, left), (_b, right)] = [database(&one), database(&other)];
        left.merge(&database(&other).1).unwrap();
        right.merge(&database(&one).1).unwrap();
        prop_assert_eq!(content(&left), content(&right));
        prop_assert_eq!(left.merge(&right).unwrap().taken, 0);
        prop_assert_eq!(left.merge(&left).unwrap().taken, 0);

        let (_c, late) = database(&third);
        let (_d, other_then_third) = database(&other);
        other_then_third.merge(&late).unwrap();
        let (_e, nested) = database(&one);
        nested.merge(&other_then_third).unwrap();
        left.merge(&late).unwrap();
        prop_assert_eq!(content(&left), content(&nested));
        left.check().unwrap();
    }
}

#[test]
fn the_later_choice_and_the_more_trusted_trial_stay() {
    let (_folder, path) = folder();
    let own = Database::open(&path).unwrap();
    let (_other_folder, other_path) = folder();
    let other = Database::open(&other_path).unwrap();
    let conv = task("conv", 8);
    let at = |unix_ms, record: TrialRecord| TrialRecord { recorded_unix_ms: unix_ms, ..record };

    let mut later = choice("b", 9);
    later.recorded_unix_ms += 1;
    own.record_choice(&conv, &choice("a", 5)).unwrap();
    other.record_choice(&conv, &later).unwrap();

    let alone = at(1, measured(5, Method::Alone));
    let wrong = at(0, TrialRecord::now(Outcome::Wrong { error: 1.0 }, Method::Screened, &[]));
    own.record_trial(&conv, "trusted", &alone).unwrap();
    other.record_trial(&conv, "trusted", &at(2, measured(4, Method::Screened))).unwrap();
    own.record_trial(&conv, "wrong", &alone).unwrap();
    other.record_trial(&conv, "wrong", &wrong).unwrap();
    other.record_trial(&conv, "new", &alone).unwrap();

    assert_eq!(own.merge(&other).unwrap(), Merged { read: 4, taken: 3 });
    assert_eq!(own.recorded_choice(&conv).unwrap(), Some(later));
    let known: Vec<_> = own.known_trials(&conv).unwrap();
    let known: Vec<_> = known
        .iter()
        .map(|trial| (trial.candidate.as_str(), trial.record.clone().unwrap()))
        .collect();
    assert_eq!(known, [("new", alone.clone()), ("trusted", alone), ("wrong", wrong)]);
}

#[test]
fn many_records_are_taken_in_while_others_write() {
    let (_folder, path) = folder();
    let own = Database::open(&path).unwrap();
    let (_other_folder, other_path) = folder();
    let other = Database::open(&other_path).unwrap();
    for candidate in 0..2500 {
        let record = measured(candidate, Method::Screened);
        other.record_trial(&task("conv", 8), &candidate.to_string(), &record).unwrap();
    }
    std::thread::scope(|scope| {
        let merge = scope.spawn(|| own.merge(&other).unwrap());
        let writer = Database::open(&path).unwrap();
        for candidate in 0..200 {
            let record = measured(candidate, Method::Screened);
            writer.record_trial(&task("gemm", 8), &candidate.to_string(), &record).unwrap();
        }
        assert_eq!(merge.join().unwrap().taken, 2500);
    });
    assert_eq!(own.known_trials(&task("gemm", 8)).unwrap().len(), 200);
    assert_eq!(own.known_trials(&task("conv", 8)).unwrap().len(), 2500);
}
