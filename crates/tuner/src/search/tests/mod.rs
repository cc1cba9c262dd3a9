//! Searches as their driver sees them.

mod landscape;
mod quality;
mod sharing;

use std::time::Duration;

use proptest::prelude::{Strategy as _, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use weft_device::{CandidateDescription, Screening};

use super::*;
use crate::cost_model::{CostModel, TrainingRows};

fn candidates(count: i32) -> Vec<CandidateDescription> {
    (0..count)
        .map(|index| CandidateDescription {
            name: format!("c{index}"),
            parameters: vec![0, index % 7, index / 7],
            features: vec![index as f32],
            screening: Screening::OnAPart,
            code: None,
        })
        .collect()
}

fn search(count: i32, strategy: Strategy, seed: u64) -> Search {
    let options = SearchOptions { strategy, seed, ..SearchOptions::default() };
    Search::new(&candidates(count), options).unwrap()
}

fn time_us(us: u64) -> Outcome {
    Outcome::Time(Duration::from_micros(us))
}

const STRATEGIES: [Strategy; 3] = [Strategy::Learned, Strategy::Random, Strategy::Exhaustive];

#[test]
fn the_untuned_candidate_is_the_first() {
    for strategy in STRATEGIES {
        assert_eq!(search(40, strategy, 7).propose(3)[0], 0, "{strategy:?}");
    }
}

#[test]
fn an_exhaustive_search_tries_all_in_order() {
    let mut search = search(100, Strategy::Exhaustive, 0);
    assert_eq!(search.propose(200), (0..100).collect::<Vec<_>>());
    assert!(!search.is_done(), "all of them are in flight");
    for candidate in 0..100 {
        search.record(candidate, time_us(200 - candidate as u64));
    }
    assert!(search.is_done());
    assert_eq!(search.best(), Some((99, Duration::from_micros(101))));
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let new = |candidates: &[CandidateDescription], strategy| {
        Search::new(candidates, SearchOptions { strategy, ..SearchOptions::default() }).map(|_| ())
    };
    assert_eq!(new(&[], Strategy::Random), Err(SearchError::NoCandidates));
    let mut uneven = candidates(3);
    uneven[2].parameters.pop();
    assert_eq!(new(&uneven, Strategy::Random), Err(SearchError::Uneven { candidate: 2 }));
    let mut uneven = candidates(3);
    uneven[1].features.push(0.0);
    assert_eq!(new(&uneven, Strategy::Learned), Err(SearchError::Uneven { candidate: 1 }));
    let many = candidates(MAX_EXHAUSTIVE as i32 + 1);
    let refused = Err(SearchError::TooMany { candidates: MAX_EXHAUSTIVE + 1 });
    assert_eq!(new(&many, Strategy::Exhaustive), refused);
    assert_eq!(new(&many, Strategy::Random), Ok(()));
}

#[test]
fn contenders_are_those_within_noise() {
    let mut search = search(10, Strategy::Random, 0);
    assert!(search.contenders(0.02).is_empty());
    for (candidate, us) in [(4, 1000), (2, 1015), (7, 1000), (5, 1021)] {
        search.record(candidate, time_us(us));
    }
    search.record(9, Outcome::Disqualified);
    assert_eq!(search.contenders(0.02), [4, 7, 2]);
    search.record(4, time_us(1030));
    assert_eq!(search.contenders(0.02), [7, 2], "measured again, and slower");
}

#[test]
fn what_was_not_proposed_is_no_trial() {
    let mut search = search(10, Strategy::Random, 0);
    search.record(3, time_us(5));
    assert_eq!((search.trials(), search.best().unwrap().0), (0, 3));
    assert_eq!(
        search.reference(),
        Some(Duration::from_micros(5)),
        "the untuned one has no time yet"
    );
    search.record(0, time_us(9));
    assert_eq!(search.reference(), Some(Duration::from_micros(9)));
    assert!(!search.propose(10).iter().any(|candidate| [0, 3].contains(candidate)));
}

#[test]
fn a_run_goes_on_where_an_earlier_one_ended() {
    let mut first = search(500, Strategy::Learned, 0);
    let mut again = search(500, Strategy::Learned, 1);
    while !first.is_done() {
        for candidate in first.propose(4) {
            let outcome = time_us(1000 - candidate as u64);
            first.record(candidate, outcome);
            again.recall(candidate, outcome);
            again.recall(candidate, outcome);
        }
    }
    assert_eq!((again.trials(), again.best()), (first.trials(), first.best()));
    assert!(again.propose(4).is_empty());
}

#[test]
fn a_released_candidate_is_proposed_again() {
    let mut search = search(3, Strategy::Random, 0);
    assert_eq!(search.propose(3).len(), 3);
    search.release(1);
    assert_eq!(search.propose(3), [1]);
    assert_eq!(search.trials(), 0);
}

#[test]
fn a_time_of_nothing_is_survived() {
    let mut search = search(5, Strategy::Learned, 0);
    search.record(0, Outcome::Time(Duration::ZERO));
    assert!(search.best().unwrap().1 > Duration::ZERO);
}

/// A model of candidates with one feature, from what some of them take relative to the untuned one.
fn model(function: impl Fn(f32) -> f32) -> CostModel {
    let mut rows = TrainingRows::default();
    for feature in 0..200 {
        rows.push(&[feature as f32], function(feature as f32)).unwrap();
    }
    CostModel::fit(&rows, 0).unwrap()
}

#[test]
fn an_informed_search_tries_what_the_model_favours() {
    let mut search = search(200, Strategy::Learned, 0);
    assert!(search.learn(&model(|feature| if feature >= 150.0 { -1.0 } else { 0.0 })));
    assert_eq!(search.predicted_gain(), None, "nothing to compare with");
    assert_eq!(search.propose(2), [0, 150]);
    search.record(0, time_us(1000));
    search.release(150);
    let gain = search.predicted_gain().unwrap();
    assert!((0.5..0.7).contains(&gain), "{gain}");
    search.record(150, time_us(368));
    assert!(search.predicted_gain().unwrap() < 0.05);
}

#[test]
fn the_devices_order_decides_where_a_model_tells_nothing_apart() {
    let mut search = search(200, Strategy::Learned, 0);
    assert!(search.learn(&model(|_| 0.0)));
    assert_eq!(search.propose(2), [0, 1]);
}

#[test]
fn a_model_of_other_candidates_is_not_followed() {
    let mut rows = TrainingRows::default();
    rows.push(&[1.0, 2.0], 0.0).unwrap();
    let mut search = search(10, Strategy::Learned, 0);
    assert!(!search.learn(&CostModel::fit(&rows, 0).unwrap()));
    assert_eq!(search.propose(10).len(), 10);
}

#[test]
fn a_search_ends_when_a_model_that_is_right_expects_nothing() {
    let slope = |feature: f32| feature / 100.0;
    let mut search = search(200, Strategy::Learned, 0);
    search.learn(&model(slope));
    while !search.is_done() {
        for candidate in search.propose(1) {
            let us = 1e6 * f64::from(slope(candidate as f32)).exp();
            search.record(candidate, time_us(us as u64));
        }
    }
    assert_eq!(search.best().unwrap().0, 0);
    assert!(search.trials() < SearchOptions::default().patience, "{}", search.trials());
}

#[test]
fn noise_that_is_known_is_not_held_against_a_model() {
    let slope = |feature: f32| feature / 400.0;
    let trials = |noise: f64| {
        let mut search = search(200, Strategy::Learned, 0);
        search.learn(&model(slope));
        search.expect_noise(noise);
        while !search.is_done() {
            for candidate in search.propose(1) {
                let off = [0.0, -0.1, 0.1][if candidate == 0 { 0 } else { 1 + candidate % 2 }];
                let us = 1e6 * (f64::from(slope(candidate as f32)) + off).exp();
                search.record(candidate, time_us(us as u64));
            }
        }
        search.trials()
    };
    assert!(trials(0.0) > 25, "{}", trials(0.0));
    assert!(trials(0.03) > 25, "it is wrong by more than that: {}", trials(0.03));
    assert!(trials(0.12) < 20, "{}", trials(0.12));
}

#[test]
fn patience_ends_a_search_without_a_model() {
    let mut search = search(200, Strategy::Learned, 0);
    while !search.is_done() {
        search.propose(1).into_iter().for_each(|candidate| search.record(candidate, time_us(7)));
    }
    assert_eq!(search.trials(), SearchOptions::default().patience + 1);
}

/// What a driver may do to a search.
#[derive(Clone, Debug)]
enum Step {
    Propose(usize),
    /// The outcome of one of those in flight, or of any other candidate.
    Time(usize, u64),
    Disqualify(usize),
    Release(usize),
    Ban(usize),
}

fn steps() -> impl proptest::strategy::Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0usize..6).prop_map(Step::Propose),
        4 => (any::<usize>(), 1u64..100).prop_map(|(which, us)| Step::Time(which, us)),
        1 => any::<usize>().prop_map(Step::Disqualify),
        1 => any::<usize>().prop_map(Step::Release),
        1 => any::<usize>().prop_map(Step::Ban),
    ];
    proptest::collection::vec(step, 0..120)
}

proptest! {
    #[test]
    fn no_candidate_is_given_out_that_is_known_banned_or_in_flight(
        count in 1i32..60, which in 0usize..3, seed: u64, steps in steps(),
    ) {
        let mut search = search(count, STRATEGIES[which], seed);
        let mut twin = search.clone();
        let count = count as usize;
        let (mut in_flight, mut settled, mut disqualified) = (Vec::new(), Vec::new(), Vec::new());
        for step in steps {
            let pick = |which: usize, in_flight: &Vec<usize>| match in_flight.len() {
                0 => which % count,
                flying => in_flight[which % flying],
            };
            match step {
                Step::Propose(wanted) => {
                    let proposals = search.propose(wanted);
                    prop_assert_eq!(&proposals, &twin.propose(wanted));
                    prop_assert!(proposals.len() <= wanted);
                    for candidate in proposals {
                        prop_assert!(candidate < count);
                        prop_assert!(!in_flight.contains(&candidate) && !settled.contains(&candidate));
                        in_flight.push(candidate);
                    }
                }
                Step::Time(which, us) => {
                    let candidate = pick(which, &in_flight);
                    search.record(candidate, time_us(us));
                    twin.record(candidate, time_us(us));
                    in_flight.retain(|&other| other != candidate);
                    settled.push(candidate);
                }
                Step::Disqualify(which) => {
                    let candidate = pick(which, &in_flight);
                    search.record(candidate, Outcome::Disqualified);
                    twin.record(candidate, Outcome::Disqualified);
                    in_flight.retain(|&other| other != candidate);
                    settled.push(candidate);
                    disqualified.push(candidate);
                }
                Step::Release(which) => {
                    let candidate = pick(which, &in_flight);
                    search.release(candidate);
                    twin.release(candidate);
                    in_flight.retain(|&other| other != candidate);
                }
                Step::Ban(which) => {
                    let candidate = which % count;
                    search.ban(candidate);
                    twin.ban(candidate);
                    in_flight.retain(|&other| other != candidate);
                    settled.push(candidate);
                    disqualified.push(candidate);
                }
            }
            prop_assert_eq!(search.in_flight(), in_flight.len());
            if let Some((best, time)) = search.best() {
                prop_assert!(!disqualified.contains(&best));
                prop_assert!(search.contenders(1e9).iter().all(|other| search.time(*other) >= Some(time)));
            }
            prop_assert!(search.contenders(1e9).iter().all(|other| !disqualified.contains(other)));
        }
    }

    #[test]
    fn a_search_ends_though_half_of_the_space_fails(count in 1i32..300, which in 0usize..3, seed: u64) {
        let mut search = search(count, STRATEGIES[which], seed);
        let mut rounds = 0;
        while !search.is_done() {
            for candidate in search.propose(5) {
                let fails = (candidate as u64 ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 0;
                let outcome = if fails { Outcome::Disqualified } else { time_us(candidate as u64 + 1) };
                search.record(candidate, outcome);
            }
            rounds += 1;
            prop_assert!(rounds <= count);
        }
        let limit = if which == 2 { count as usize } else { SearchOptions::default().max_trials };
        prop_assert!(search.trials() <= limit);
    }
}
