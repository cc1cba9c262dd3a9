//! How trials are shared out between operators.

#![allow(clippy::print_stdout)]

use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use proptest::prelude::{any, prop_assert, proptest};

use super::landscape::Landscape;
use super::{candidates, search, time_us};
use crate::cost_model::{CostModel, TrainingRows};
use crate::search::learned::START;
use crate::search::{Effort, Outcome, Search, SearchOptions, Strategy};

/// Every candidate takes less than those before it, so that there is always more to gain.
fn falling(effort: &mut Effort, rounds: usize, per_round: usize) -> Vec<usize> {
    let mut trials = vec![0; effort.searches().len()];
    for _ in 0..rounds {
        for proposal in effort.next(per_round) {
            trials[proposal.operator] += 1;
            let us = 1_000_000.0 * 0.97f64.powi(trials[proposal.operator] as i32);
            effort.record(proposal, Outcome::Time(Duration::from_secs_f64(us * 1e-6)));
        }
    }
    trials
}

#[test]
fn what_takes_more_of_the_time_gets_more_of_the_trials() {
    let mut effort = Effort::new(400);
    for occurrences in [1.0, 10.0, 3.0] {
        let options = SearchOptions { max_trials: 1000, ..SearchOptions::default() };
        effort.add(Search::new(&candidates(1000), options).unwrap(), occurrences);
    }
    let trials = falling(&mut effort, 50, 4);
    assert_eq!(trials.iter().sum::<usize>(), 200);
    assert!(trials[1] > trials[2] && trials[2] > trials[0], "{trials:?}");
    assert!(trials[0] >= 10, "all get their start: {trials:?}");
}

#[test]
fn what_does_not_improve_leaves_its_trials_to_others() {
    let mut effort = Effort::new(1000);
    for seed in 0..2 {
        let options = SearchOptions { seed, max_trials: 200, ..SearchOptions::default() };
        effort.add(Search::new(&candidates(1000), options).unwrap(), 1.0);
    }
    let mut trials = [0, 0];
    for _ in 0..60 {
        for proposal in effort.next(2) {
            trials[proposal.operator] += 1;
            let falls = if proposal.operator == 1 { trials[1] as u64 * 10 } else { 0 };
            effort.record(proposal, time_us(10_000 - falls));
        }
    }
    assert!(trials[1] > 2 * trials[0], "{trials:?}");
}

proptest! {
    #[test]
    fn all_are_started_and_no_limit_is_passed(
        sizes in proptest::collection::vec(1i32..80, 1..12),
        weights in proptest::collection::vec(0.0f64..100.0, 12),
        max_trials in 0usize..600,
        per_round in 1usize..20,
        strategy in 0usize..3,
        seed: u64,
        fails in any::<u64>(),
    ) {
        let strategy = [Strategy::Learned, Strategy::Random, Strategy::Exhaustive][strategy];
        let mut effort = Effort::new(max_trials);
        for (&size, &weight) in sizes.iter().zip(&weights) {
            effort.add(search(size, strategy, seed), weight);
        }
        let mut seen = HashSet::new();
        let mut trials = vec![0; sizes.len()];
        let start: Vec<usize> = sizes.iter().map(|&size| START.min(size as usize)).collect();
        while !effort.is_done() {
            let proposals = effort.next(per_round);
            prop_assert!(!proposals.is_empty() && proposals.len() <= per_round);
            for proposal in proposals {
                prop_assert!(seen.insert(proposal), "proposed twice: {proposal:?}");
                trials[proposal.operator] += 1;
                let goes_beyond = trials[proposal.operator] > START;
                prop_assert!(!goes_beyond || trials.iter().zip(&start).all(|(had, due)| had >= due));
                let is_failure = fails >> (proposal.candidate % 64) & 1 == 1;
                let outcome = time_us(1000 + (proposal.candidate as u64 * 37) % 500);
                effort.record(proposal, if is_failure { Outcome::Disqualified } else { outcome });
            }
            let untuned_are_first = trials.iter().all(|&had| had <= 1) || !trials.contains(&0);
            prop_assert!(untuned_are_first, "{trials:?}");
        }
        prop_assert!(seen.len() <= max_trials);
        prop_assert!(effort.next(1).is_empty());
        prop_assert!(max_trials < sizes.len() || !trials.contains(&0));
    }
}

/// The time of all operators with what was found, relative to the best there is.
fn total_regret(landscapes: &[Landscape], occurrences: &[f64], effort: &Effort) -> f64 {
    let found = effort.searches().map(|search| search.best().unwrap().0);
    let (mut total, mut least) = (0.0, 0.0);
    for ((landscape, occurrences), found) in landscapes.iter().zip(occurrences).zip(found) {
        total += occurrences * landscape.truth_us[found];
        least += occurrences * landscape.best_us();
    }
    total / least - 1.0
}

/// Thirty operators searched together, with a model that learns from all of them: what they take then, relative to the
/// best there is, and after how many trials.
fn tuned_together(
    world: u64,
    max_trials: usize,
    per_operator: usize,
    occurrences: &[f64],
) -> (f64, usize) {
    let mut landscapes = Landscape::thirty(world);
    let mut effort = Effort::new(max_trials);
    for (index, landscape) in landscapes.iter().enumerate() {
        let options = SearchOptions {
            seed: index as u64,
            max_trials: per_operator,
            ..SearchOptions::default()
        };
        effort.add(Search::new(&landscape.candidates, options).unwrap(), occurrences[index]);
    }
    while !effort.is_done() {
        for proposal in effort.next(16) {
            effort.record(proposal, landscapes[proposal.operator].measure(proposal.candidate));
        }
        let mut rows = TrainingRows::default();
        effort.add_rows(&mut rows).unwrap();
        let model = CostModel::fit(&rows, effort.trials() as u64).unwrap();
        for (operator, features) in effort.open_features() {
            effort.search_mut(operator).expect(&features.expected_by(&model).unwrap());
        }
    }
    (total_regret(&landscapes, occurrences, &effort), effort.trials())
}

/// Some operators occur often, as in a model with many equal layers.
fn occurrences() -> Vec<f64> {
    (0..30).map(|index| [1.0, 1.0, 4.0, 16.0][index % 4]).collect()
}

/// Mean regret and trials over several worlds.
fn mean_tuned_together(worlds: Range<u64>, max_trials: usize, per_operator: usize) -> (f64, f64) {
    let count = (worlds.end - worlds.start) as f64;
    let runs = worlds.map(|world| tuned_together(world, max_trials, per_operator, &occurrences()));
    let (regret, trials) = runs.fold((0.0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    (regret / count, trials as f64 / count)
}

#[test]
fn shared_out_trials_save_more_than_equal_ones() {
    let (shared, _) = mean_tuned_together(30..33, 360, 64);
    let (equal, _) = mean_tuned_together(30..33, 360, 12);
    println!("360 trials for 30 operators: shared out {shared:.4}, 12 for each {equal:.4}");
    assert!(shared < 0.7 * equal && shared < 0.05);
}

#[test]
#[ignore = "prints what docs/tuning-search.md says; for a release build"]
fn quality_of_operators_tuned_together() {
    for (max_trials, per_operator) in [(360, 64), (360, 12), (600, 64), (600, 20), (1920, 64)] {
        let (regret, trials) = mean_tuned_together(50..58, max_trials, per_operator);
        let limits = format!("at most {max_trials} trials, {per_operator} per operator");
        println!("{limits}: {trials:.0} trials, {:.1} % above the best", 100.0 * regret);
    }
}

#[test]
fn what_is_compiled_is_limited_and_can_be_asked_for_alone() {
    // Candidates of both operators need the same ten things, in turns; the first ones need none.
    let code = |candidate: usize| candidate.checked_sub(2).map(|number| number as u64 % 10);
    let operator = || {
        let mut all = candidates(40);
        all.iter_mut().enumerate().for_each(|(candidate, one)| one.code = code(candidate));
        Search::new(&all, SearchOptions::default()).unwrap()
    };
    let mut effort = Effort::new(1000);
    for _ in 0..2 {
        effort.add(operator(), 1.0);
    }
    let untuned = effort.next_within(2, 0);
    assert!(untuned.iter().all(|proposal| proposal.candidate == 0), "{untuned:?}");
    for proposal in untuned {
        effort.record(proposal, time_us(10));
    }
    let asked_for = effort.next_to_compile(4);
    let needed: HashSet<Option<u64>> = asked_for.iter().map(|it| code(it.candidate)).collect();
    assert_eq!((asked_for.len(), needed.len()), (4, 4), "each needs something else: {asked_for:?}");
    assert!(!needed.contains(&None) && effort.compiled() == 4);
    let others = effort.next_within(12, 1);
    assert!(others.len() > 5 && effort.compiled() <= 5, "{others:?}");
    let left = 10 - effort.compiled();
    assert_eq!(effort.next_to_compile(100).len(), left);
    assert_eq!((effort.compiled(), effort.next_to_compile(100).len()), (10, 0));
}
