use super::*;

/// How long the first model takes by its profile.
const ALONE: Span = Span::from_nanos(100_000);

#[test]
fn a_model_that_is_always_slower_is_soon_predicted_so_and_the_others_are_not() {
    let mut function = LatencyFunction::new(2);
    for _ in 0..200 {
        let predicted = ALONE * function.correction(ModelId(0));
        let prediction = function.prediction(ModelId(0), predicted);
        function.observe(ModelId(0), prediction, Span::from_us(150.0));
    }
    assert!((function.correction(ModelId(0)) - 1.5).abs() < 1e-3);
    assert_eq!(function.correction(ModelId(1)), 1.0);
    assert!(function.error(ModelId(0)).unwrap().median < 1e-3);
    assert_eq!(function.error(ModelId(1)), None);
    assert_eq!(function.error_overall(), function.error(ModelId(0)));
}

#[test]
fn predictions_made_before_a_correction_do_not_count_twice() {
    let mut function = LatencyFunction::new(1);
    let early = function.prediction(ModelId(0), ALONE);
    for _ in 0..200 {
        function.observe(ModelId(0), early, Span::from_us(150.0));
    }
    assert!((function.correction(ModelId(0)) - 1.5).abs() < 1e-3);
    assert!((function.error(ModelId(0)).unwrap().median - 0.5).abs() < 1e-9);
}

#[test]
fn what_was_learned_before_is_where_it_begins() {
    let function = LatencyFunction::new(2).corrected(&[1.6, 1.0]);
    assert!((function.correction(ModelId(0)) - 1.6).abs() < 1e-9);
    assert_eq!(function.correction(ModelId(1)), 1.0);
}
