use proptest::prelude::*;

use super::*;
use crate::profile::ProfilePoint;

const BANDWIDTH: f64 = 1e9;

/// Two models that take 100 us on one unit and 60 on two: one that moves little, and one that is all memory.
fn function() -> LatencyFunction {
    let profile = |dram_bytes| {
        let point =
            |units, us| ProfilePoint { batch: 1, units, latency: Span::from_us(us), dram_bytes };
        Arc::new(Profile::new(&[point(1, 100.0), point(2, 60.0)], 1).unwrap())
    };
    LatencyFunction::new(vec![profile(1e3), profile(60e3)], BANDWIDTH)
}

fn execution(model: u32, units: u32) -> Execution {
    Execution { model: ModelId(model), batch: 1, units }
}

#[test]
fn alone_the_profile_is_right() {
    let function = function();
    assert_eq!(function.predict(execution(0, 1), &[]).latency, Span::from_us(100.0));
    assert_eq!(function.predict(execution(1, 2), &[]).latency, Span::from_us(60.0));
}

#[test]
fn beside_others_memory_is_what_is_waited_for() {
    let function = function();
    let hungry = function.memory_share(execution(1, 2));
    assert_eq!(hungry.value(), 1.0);
    assert_eq!(function.predict(execution(1, 2), &[hungry]).latency, Span::from_us(120.0));
    let frugal = function.predict(execution(0, 1), &[hungry, hungry]).latency;
    assert!(frugal > Span::from_us(100.0) && frugal < Span::from_us(103.0), "{frugal}");
}

#[test]
fn a_model_that_is_always_slower_is_soon_predicted_so_and_the_others_are_not() {
    let mut function = function();
    let measured = Span::from_us(150.0);
    for _ in 0..200 {
        let prediction = function.predict(execution(0, 1), &[]);
        function.observe(ModelId(0), prediction, measured);
    }
    assert!((function.correction(ModelId(0)) - 1.5).abs() < 1e-3);
    assert_eq!(function.correction(ModelId(1)), 1.0);
    let predicted = function.predict(execution(0, 1), &[]).latency;
    assert!((predicted.us() / 150.0 - 1.0).abs() < 1e-3);
    assert!(function.error(ModelId(0)).unwrap().median < 1e-3);
    assert_eq!(function.error(ModelId(1)), None);
    assert_eq!(function.error_overall(), function.error(ModelId(0)));
}

#[test]
fn predictions_made_before_a_correction_do_not_count_twice() {
    let mut function = function();
    let early = function.predict(execution(0, 1), &[]);
    for _ in 0..200 {
        function.observe(ModelId(0), early, Span::from_us(150.0));
    }
    assert!((function.correction(ModelId(0)) - 1.5).abs() < 1e-3);
    assert!((function.error(ModelId(0)).unwrap().median - 0.5).abs() < 1e-9);
}

proptest! {
    #[test]
    fn more_units_never_take_longer_whatever_runs_beside(
        bytes in 0.0f64..1e6,
        others in prop::collection::vec(0.0f64..1e6, 0..6),
    ) {
        let point = |units, us, dram_bytes| {
            ProfilePoint { batch: 1, units, latency: Span::from_us(us), dram_bytes }
        };
        let profile = |bytes| {
            let points = [point(1, 700.0, bytes), point(2, 390.0, bytes), point(4, 300.0, bytes)];
            Arc::new(Profile::new(&points, 1).unwrap())
        };
        let profiles = std::iter::once(&bytes).chain(&others).map(|&bytes| profile(bytes));
        let function = LatencyFunction::new(profiles.collect(), BANDWIDTH);
        let shares: Vec<MemoryShare> =
            (1..=others.len()).map(|model| function.memory_share(execution(model as u32, 2))).collect();
        let at = |units| function.predict(execution(0, units), &shares).latency.us();
        // A share of memory never exceeds all of the time, so only what is not all memory gains from units.
        prop_assume!(bytes / BANDWIDTH < 300e-6);
        prop_assert!(at(2) <= at(1) + 0.002 && at(4) <= at(2) + 0.002);
    }
}
