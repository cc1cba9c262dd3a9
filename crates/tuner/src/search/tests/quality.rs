//! How good what a search finds is, and after how many trials.

#![allow(clippy::print_stdout)]

use std::ops::Range;

use super::landscape::Landscape;
use crate::cost_model::{CostModel, TrainingRows};
use crate::search::{Outcome, Search, SearchOptions, Strategy};

/// How many candidates are in flight at once.
const BATCH: usize = 8;

/// The candidate that would be chosen after each trial, as its distance from the best there is.
type Regrets = Vec<f64>;

/// Searches one operator, learning from what is known and from what is measured.
fn regrets(landscape: &mut Landscape, options: SearchOptions, known: &TrainingRows) -> Regrets {
    let mut search = Search::new(&landscape.candidates, options).unwrap();
    let mut regrets = Vec::new();
    let learn = |search: &mut Search| {
        let mut rows = known.clone();
        search.add_rows(&mut rows).unwrap();
        if options.strategy == Strategy::Learned
            && let Some(model) = CostModel::fit(&rows, options.seed + search.trials() as u64)
        {
            assert!(search.learn(&model));
        }
    };
    learn(&mut search);
    while !search.is_done() {
        for candidate in search.propose(BATCH) {
            search.record(candidate, landscape.measure(candidate));
            regrets.push(landscape.regret(search.best().unwrap().0));
        }
        learn(&mut search);
    }
    regrets
}

/// All operators of some worlds, each searched with options that may depend on the size of its space.
fn searched(
    worlds: Range<u64>,
    options: impl Fn(usize) -> SearchOptions,
    is_informed: bool,
) -> Vec<Regrets> {
    let mut runs = Vec::new();
    for world in worlds {
        let known = if is_informed { measured_elsewhere(world) } else { TrainingRows::default() };
        for (index, landscape) in Landscape::thirty(world).iter_mut().enumerate() {
            let options = SearchOptions { seed: index as u64, ..options(landscape.len()) };
            runs.push(regrets(landscape, options, &known));
        }
    }
    runs
}

/// Random candidates of thirty operators of another world.
fn measured_elsewhere(world: u64) -> TrainingRows {
    let mut rows = TrainingRows::default();
    let options = SearchOptions { strategy: Strategy::Random, ..SearchOptions::default() };
    for mut landscape in Landscape::thirty(world + 100) {
        let mut search = Search::new(&landscape.candidates, options).unwrap();
        for candidate in search.propose(options.max_trials) {
            search.record(candidate, landscape.measure(candidate));
        }
        search.add_rows(&mut rows).unwrap();
    }
    rows
}

/// A quarter of the space, and no more than 64 trials.
fn quarter(size: usize) -> usize {
    (size / 4).clamp(12, 64)
}

/// A search that goes on for a quarter of the space.
fn unstopped(size: usize) -> SearchOptions {
    let never =
        SearchOptions { patience: usize::MAX, worthwhile_gain: 0.0, ..SearchOptions::default() };
    SearchOptions { max_trials: quarter(size), ..never }
}

/// A search that stops by itself, and at a quarter of the space.
fn stopped(size: usize) -> SearchOptions {
    SearchOptions { max_trials: quarter(size), ..SearchOptions::default() }
}

fn baseline(strategy: Strategy) -> impl Fn(usize) -> SearchOptions {
    move |size| SearchOptions { strategy, max_trials: size, ..SearchOptions::default() }
}

fn mean(runs: &[Regrets], value: impl Fn(&Regrets) -> f64) -> f64 {
    runs.iter().map(value).sum::<f64>() / runs.len() as f64
}

fn mean_regret_after(runs: &[Regrets], trials: usize) -> f64 {
    mean(runs, |regrets| regrets[trials.min(regrets.len()) - 1])
}

fn mean_trials(runs: &[Regrets]) -> f64 {
    mean(runs, |regrets| regrets.len() as f64)
}

/// After how many trials for each operator the mean regret is at most `regret`.
fn trials_to(runs: &[Regrets], regret: f64) -> Option<usize> {
    let most = runs.iter().map(Vec::len).max().unwrap_or(0);
    (1..=most).find(|&trials| mean_regret_after(runs, trials) <= regret)
}

fn print(name: &str, runs: &[Regrets]) {
    print!("{name:<22} {:6.1} trials; regret after", mean_trials(runs));
    for trials in [1, 8, 16, 32, 64, 128, 256] {
        print!("  {trials}: {:.1} %", 100.0 * mean_regret_after(runs, trials));
    }
    let worst = runs.iter().filter_map(|regrets| regrets.last()).copied().fold(0.0, f64::max);
    let at_end = 100.0 * mean_regret_after(runs, usize::MAX);
    print!("  end: {at_end:.1} %, worst {:.1} %;", 100.0 * worst);
    println!("  to 5 %: {:?}, to 2 %: {:?}", trials_to(runs, 0.05), trials_to(runs, 0.02));
}

#[test]
fn a_quarter_of_the_space_is_enough_and_less_where_others_were_learned_from() {
    let learned = searched(30..31, unstopped, false);
    let informed = searched(30..31, unstopped, true);
    let random = searched(30..31, baseline(Strategy::Random), false);
    let listed = searched(30..31, baseline(Strategy::Exhaustive), false);
    print("learned", &learned);
    print("learned, informed", &informed);
    print("random", &random);
    print("in the listed order", &listed);
    assert!(mean_regret_after(&learned, usize::MAX) <= 0.02);
    let to = |runs: &[Regrets]| trials_to(runs, 0.05).unwrap();
    assert!(to(&random) >= 4 * to(&learned), "{} to {}", to(&random), to(&learned));
    assert!(to(&listed) > to(&learned), "{} to {}", to(&listed), to(&learned));
    assert!(to(&learned) >= 2 * to(&informed), "{} to {}", to(&learned), to(&informed));
}

#[test]
fn an_early_stop_saves_trials_and_loses_little() {
    let (unstopped, alone) = (searched(30..31, unstopped, false), searched(30..31, stopped, false));
    let informed = searched(30..31, stopped, true);
    print("stopped", &alone);
    print("stopped, informed", &informed);
    assert!(mean_trials(&alone) <= 0.9 * mean_trials(&unstopped));
    assert!(mean_trials(&informed) <= 0.7 * mean_trials(&unstopped));
    assert!(mean_regret_after(&alone, usize::MAX) <= 0.03);
    assert!(mean_regret_after(&informed, usize::MAX) <= 0.02);
}

#[test]
#[ignore = "prints what docs/tuning-search.md says; for a release build"]
fn quality_over_many_operators() {
    print("learned", &searched(50..58, unstopped, false));
    print("learned, informed", &searched(50..58, unstopped, true));
    print("stopped", &searched(50..58, stopped, false));
    print("stopped, informed", &searched(50..58, stopped, true));
    print("random", &searched(50..58, baseline(Strategy::Random), false));
    print("in the listed order", &searched(50..58, baseline(Strategy::Exhaustive), false));
}

#[test]
fn a_good_candidate_is_found_though_half_of_the_space_fails() {
    let mut total = 0.0;
    for index in 0..10 {
        let mut landscape = Landscape::new(index, 400);
        let fails = |candidate: usize| candidate.wrapping_mul(0x9E37_79B9) >> 7 & 1 == 1;
        let options = SearchOptions { seed: index, ..SearchOptions::default() };
        let mut search = Search::new(&landscape.candidates, options).unwrap();
        while !search.is_done() {
            for candidate in search.propose(BATCH) {
                let outcome = landscape.measure(candidate);
                let outcome = if fails(candidate) { Outcome::Disqualified } else { outcome };
                search.record(candidate, outcome);
            }
            let mut rows = TrainingRows::default();
            search.add_rows(&mut rows).unwrap();
            CostModel::fit(&rows, index).map(|model| search.learn(&model));
        }
        let (found, _) = search.best().unwrap();
        assert!(!fails(found));
        let right = (0..landscape.len()).filter(|&candidate| !fails(candidate));
        let best = right.map(|candidate| landscape.regret(candidate)).fold(f64::INFINITY, f64::min);
        total += landscape.regret(found) - best;
    }
    assert!(total / 10.0 <= 0.08, "{}", total / 10.0);
}
