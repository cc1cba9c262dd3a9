//! What a cost model learns, and what it survives.

use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;

/// Rows of uniform features under a function.
fn drawn(count: usize, width: usize, seed: u64, function: impl Fn(&[f32]) -> f32) -> TrainingRows {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut rows = TrainingRows::default();
    for _ in 0..count {
        let features: Vec<f32> = (0..width).map(|_| random.random_range(0.0..1.0)).collect();
        let target = function(&features);
        rows.push(&features, target).unwrap();
    }
    rows
}

/// The rank of each value; equal ones share the mean of theirs.
fn ranks(values: &[f32]) -> Vec<f64> {
    let below = |value: f32| values.iter().filter(|&&other| other < value).count() as f64;
    let equal = |value: f32| values.iter().filter(|&&other| other == value).count() as f64;
    values.iter().map(|&value| below(value) + (equal(value) - 1.0) / 2.0).collect()
}

/// How alike two orders are: 1 where they are the same.
fn spearman(one: &[f32], other: &[f32]) -> f64 {
    let (one, other) = (ranks(one), ranks(other));
    let mean = (one.len() as f64 - 1.0) / 2.0;
    let product =
        |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    product(&one, &other) / (product(&one, &one) * product(&other, &other)).sqrt()
}

/// The order that a model gives to rows that it has not seen, against their true one.
fn rank_quality(train: &TrainingRows, test: &TrainingRows) -> f64 {
    let model = CostModel::fit(train, 1).unwrap();
    let predicted: Vec<f32> = test.iter().map(|row| model.predict(row)).collect();
    spearman(&predicted, test.targets())
}

#[test]
#[allow(clippy::print_stdout)]
fn rows_that_were_not_seen_are_ranked() {
    type Function = fn(&[f32]) -> f32;
    let functions: [(&str, Function, usize, f64); 5] = [
        ("a sum", |x| x[0] + 2.0 * x[1] - x[2], 200, 0.93),
        ("a product", |x| (x[0] + 0.1) * (x[1] + 0.1), 200, 0.93),
        ("a valley", |x| (x[0] - 0.4).abs() + (x[1] - 0.7).abs(), 300, 0.90),
        (
            "a step with a cliff",
            |x| (x[0] * 4.0).floor() + if x[1] > 0.8 { 3.0 } else { 0.0 },
            200,
            0.93,
        ),
        ("the greater of two", |x| (x[0] * 2.0).max(x[1] + x[2]), 300, 0.90),
    ];
    for (name, function, count, least) in functions {
        let (train, test) = (drawn(count, 10, 1, function), drawn(400, 10, 2, function));
        let quality = rank_quality(&train, &test);
        println!("{name}: {count} rows, Spearman {quality:.3}");
        assert!(quality >= least, "{name}: {quality}");
    }
}

#[test]
fn a_constant_is_learned_and_nothing_is_not() {
    assert_eq!(CostModel::fit(&TrainingRows::default(), 0), None);
    let model = CostModel::fit(&drawn(50, 4, 3, |_| 0.25), 0).unwrap();
    assert!((model.predict(&[0.5; 4]) - 0.25).abs() < 1e-6);
    let mut one = TrainingRows::default();
    one.push(&[1.0, 2.0], -3.0).unwrap();
    assert_eq!(CostModel::fit(&one, 0).unwrap().predict(&[9.0, f32::NAN]), -3.0);
    let mut bare = TrainingRows::default();
    bare.push(&[], 1.0).unwrap();
    bare.push(&[], 3.0).unwrap();
    assert_eq!(CostModel::fit(&bare, 0).unwrap().predict(&[]), 2.0);
}

#[test]
fn features_that_are_no_numbers_are_survived_and_used() {
    let strange = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -0.0];
    let mut rows = TrainingRows::default();
    let mut random = SmallRng::seed_from_u64(5);
    for row in 0..400usize {
        let kind = row % strange.len();
        let noise = strange[random.random_range(0..strange.len())];
        rows.push(&[strange[kind], noise, f32::NAN], kind as f32).unwrap();
    }
    let model = CostModel::fit(&rows, 0).unwrap();
    for (kind, &value) in strange.iter().enumerate() {
        let predicted = model.predict(&[value, f32::NAN, 7.0]);
        assert!((predicted - kind as f32).abs() < 0.3, "{value}: {predicted}");
    }
}

#[test]
fn what_is_no_row_is_refused() {
    let mut rows = TrainingRows::default();
    rows.push(&[1.0], 1.0).unwrap();
    assert_eq!(rows.push(&[1.0, 2.0], 1.0), Err(RowError::Width { width: 2, expected: 1 }));
    let wide = vec![0.0; MAX_FEATURES + 1];
    assert_eq!(rows.push(&wide, 1.0), Err(RowError::TooWide { width: MAX_FEATURES + 1 }));
    assert_eq!(rows.push(&[1.0], f32::NAN), Err(RowError::Target));
    assert_eq!(rows.push(&[1.0], f32::INFINITY), Err(RowError::Target));
    while rows.len() < MAX_ROWS {
        rows.push(&[0.0], 0.0).unwrap();
    }
    assert_eq!(rows.push(&[1.0], 1.0), Err(RowError::Full));
}

#[test]
fn targets_out_of_all_proportion_are_survived() {
    let rows = drawn(100, 3, 1, |x| if x[0] > 0.5 { f32::MAX } else { f32::MIN });
    CostModel::fit(&rows, 0).unwrap().predict(&[0.1, 0.2, 0.3]);
}

#[test]
fn the_seed_decides() {
    let rows = drawn(100, 6, 1, |x| x[0] * x[1]);
    assert_eq!(CostModel::fit(&rows, 4), CostModel::fit(&rows, 4));
    assert_ne!(CostModel::fit(&rows, 4), CostModel::fit(&rows, 5));
}

#[test]
fn noise_alone_is_not_learned_by_heart() {
    let mut random = SmallRng::seed_from_u64(11);
    let mut rows = TrainingRows::default();
    for _ in 0..600 {
        let features: Vec<f32> = (0..8).map(|_| random.random_range(0.0..1.0)).collect();
        rows.push(&features, random.random_range(-1.0..1.0)).unwrap();
    }
    let model = CostModel::fit(&rows, 0).unwrap();
    let fresh = drawn(300, 8, 12, |_| 0.0);
    let error = fresh.iter().map(|row| model.predict(row).powi(2)).sum::<f32>() / 300.0;
    assert!(error < 0.1, "the noise's variance is a third; predictions vary by {error}");
}

#[test]
#[ignore = "prints how long learning and predicting take; for a release build"]
#[allow(clippy::print_stdout)]
fn time_of_a_fit() {
    let function = |x: &[f32]| (x[0] * 2.0).max(x[1] + x[2]) + x[3] * x[4] + (x[5] - 0.5).abs();
    for count in [100, 1000, 3000, 5000] {
        let (rows, candidates) = (drawn(count, 25, 1, function), drawn(400, 25, 2, function));
        let (fit, model) = least_time(|| CostModel::fit(&rows, 0).unwrap());
        let predict = || candidates.iter().map(|row| model.predict(row)).collect::<Vec<_>>();
        let (predict, predicted) = least_time(predict);
        let quality = spearman(&predicted, candidates.targets());
        println!(
            "{count} rows: fit {fit:.2?}, 400 predictions {predict:.2?}, Spearman {quality:.3}"
        );
    }
}

/// What something takes where nothing else interferes, and its result.
fn least_time<T>(run: impl Fn() -> T) -> (Duration, T) {
    let timed = || {
        let start = Instant::now();
        let result = run();
        (start.elapsed(), result)
    };
    (0..20).map(|_| timed()).min_by_key(|(time, _)| *time).unwrap()
}
