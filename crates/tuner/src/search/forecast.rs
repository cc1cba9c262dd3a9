//! What a cost model expects of the candidates of one operator, and how right it has been lately.

use std::collections::VecDeque;

use super::expectation::{Expectation, Features};
use super::ledger::Ledger;

/// Over how many trials it is judged whether a model is right.
const JUDGED_TRIALS: usize = 12;

/// From how many rows on a model is followed from the start of a search.
const INFORMED_ROWS: usize = 128;

/// What noise leaves of a model's error at least, where it is as large: noise is estimated, too, and a device that many share is
/// full of it.
const LEAST_ERROR: f64 = 0.02;

/// How much the operator's own measurements count against the model, in rows.
const CORRECTION_WEIGHT: f64 = 2.0;

/// Expected times, as logarithms relative to the operator's reference.
#[derive(Clone, Debug)]
pub(super) struct Forecast {
    features: Features,
    expected: Option<Vec<f64>>,
    /// How many rows the model has learned from.
    rows: usize,
    /// By how much the last measured candidates differed from what had been expected of them.
    errors: VecDeque<f64>,
    /// By how much measurements of one candidate differ, as a logarithm.
    noise: f64,
}

impl Forecast {
    pub(super) fn new(features: Features) -> Self {
        Self { features, expected: None, rows: 0, errors: VecDeque::new(), noise: 0.0 }
    }

    pub(super) fn features(&self) -> &Features {
        &self.features
    }

    /// Takes a model's word for all candidates, moved by what it says of those that were measured.
    pub(super) fn update(&mut self, expectation: &Expectation, ledger: &Ledger) {
        let mut expected: Vec<f64> = expectation.times.iter().copied().map(f64::from).collect();
        let (mut sum, mut count) = (0.0, 0.0);
        for (candidate, ratio) in ledger.log_ratios() {
            sum += ratio - expected[candidate];
            count += 1.0;
        }
        let correction = sum / (count + CORRECTION_WEIGHT);
        expected.iter_mut().for_each(|value| *value += correction);
        self.expected = Some(expected);
        self.rows = expectation.rows;
    }

    /// What is expected of a candidate; not a number before a model was learned.
    pub(super) fn expected(&self, candidate: usize) -> f64 {
        self.expected.as_ref().map_or(f64::NAN, |expected| expected[candidate])
    }

    pub(super) fn is_known(&self) -> bool {
        self.expected.is_some()
    }

    /// There is a model, and it has seen enough to be followed from the start.
    pub(super) fn is_informed(&self) -> bool {
        self.is_known() && self.rows >= INFORMED_ROWS
    }

    /// Judges the model by a candidate that it had not seen.
    pub(super) fn judge(&mut self, candidate: usize, ratio: f64) {
        if !self.is_known() {
            return;
        }
        if self.errors.len() == JUDGED_TRIALS {
            self.errors.pop_front();
        }
        self.errors.push_back(ratio - self.expected(candidate));
    }

    /// Takes note of how much measurements differ by themselves.
    pub(super) fn expect_noise(&mut self, noise: f64) {
        self.noise = noise;
    }

    /// The root mean square of the last errors, without the one that was slower than expected by the most, and as far as
    /// noise does not explain it: more trials do not make a model better than its measurements. None before there are
    /// enough of them.
    pub(super) fn error(&self) -> Option<f64> {
        let slowest = self.errors.iter().copied().fold(0.0, f64::max);
        let squares: f64 = self.errors.iter().map(|error| error * error).sum();
        let square = (squares - slowest * slowest) / (JUDGED_TRIALS - 1) as f64;
        let least = square.min(LEAST_ERROR * LEAST_ERROR);
        let unexplained = (square - self.noise * self.noise).max(least);
        (self.errors.len() == JUDGED_TRIALS).then(|| unexplained.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of a model that was off by so much in turns, up and down, beside noise.
    fn error(off: f64, noise: f64) -> f64 {
        let errors = (0..JUDGED_TRIALS).map(|trial| if trial % 2 == 0 { off } else { -off });
        let features = Features::new(0, std::iter::empty());
        let forecast = Forecast { errors: errors.collect(), noise, ..Forecast::new(features) };
        forecast.error().unwrap()
    }

    #[test]
    fn noise_is_taken_off_the_error_but_for_a_little() {
        let is_near = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(is_near(error(0.1, 0.0), 0.1));
        assert!(is_near(error(0.1, 0.06), 0.08));
        assert!(is_near(error(0.1, 0.3), LEAST_ERROR), "{}", error(0.1, 0.3));
        assert!(is_near(error(0.01, 0.3), 0.01), "it is no larger than it was");
        assert!(is_near(error(0.0, 0.3), 0.0));
    }
}
