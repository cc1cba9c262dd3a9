//! How far predictions are off: a metric for people.

use std::collections::VecDeque;

/// How many completions of a model the error is taken over.
const WINDOW: usize = 256;

/// The error of recent predictions, as shares: 0.1 is off by a tenth, either way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictionError {
    /// Half of the predictions are off by no more.
    pub median: f64,
    /// 95 of a hundred are.
    pub p95: f64,
    /// The number of completions that it was taken over.
    pub completions: usize,
}

/// The latest errors of one model.
#[derive(Clone, Debug, Default)]
pub(super) struct ErrorWindow(VecDeque<f64>);

impl ErrorWindow {
    /// Takes in the ratio of what was measured to what was predicted.
    pub(super) fn push(&mut self, ratio: f64) {
        if !ratio.is_finite() {
            return;
        }
        if self.0.len() == WINDOW {
            self.0.pop_front();
        }
        self.0.push_back((ratio - 1.0).abs());
    }
}

impl PredictionError {
    /// Over several windows together; `None` where all are empty.
    pub(super) fn over<'a>(windows: impl IntoIterator<Item = &'a ErrorWindow>) -> Option<Self> {
        let mut errors: Vec<f64> =
            windows.into_iter().flat_map(|window| window.0.iter().copied()).collect();
        let completions = errors.len();
        if completions == 0 {
            return None;
        }
        errors.sort_unstable_by(f64::total_cmp);
        // The smallest error that at least this share of the predictions does not exceed.
        let at = |share: f64| errors[(share * completions as f64).ceil() as usize - 1];
        Some(Self { median: at(0.5), p95: at(0.95), completions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(ratios: impl IntoIterator<Item = f64>) -> ErrorWindow {
        let mut window = ErrorWindow::default();
        ratios.into_iter().for_each(|ratio| window.push(ratio));
        window
    }

    #[test]
    fn the_error_is_its_median_and_its_95th_percentile() {
        let hundred = window((1..=100).rev().map(|percent| 1.0 + f64::from(percent) / 100.0));
        let error = PredictionError::over([&hundred]).unwrap();
        assert!((error.median - 0.5).abs() < 1e-9 && (error.p95 - 0.95).abs() < 1e-9);
        assert_eq!(error.completions, 100);
        let one = PredictionError::over([&window([0.75])]).unwrap();
        assert_eq!((one.median, one.p95), (0.25, 0.25));
        assert_eq!(PredictionError::over([&window([]), &window([f64::NAN])]), None);
    }

    #[test]
    fn old_errors_are_forgotten() {
        let both = window(std::iter::repeat_n(3.0, 1000).chain(std::iter::repeat_n(1.5, WINDOW)));
        let error = PredictionError::over([&both]).unwrap();
        assert_eq!((error.median, error.p95, error.completions), (0.5, 0.5, WINDOW));
    }

    #[test]
    fn several_models_count_together() {
        let (good, bad) = (window([1.0; 30]), window([2.0; 10]));
        let error = PredictionError::over([&good, &bad]).unwrap();
        assert_eq!((error.median, error.p95, error.completions), (0.0, 1.0, 40));
    }
}
