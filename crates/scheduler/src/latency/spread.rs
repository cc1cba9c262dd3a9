//! How far durations of one model stray from what is predicted: the margin that promises need.

/// How much of the distance to a new error is gone; the last few dozen completions count most.
const WEIGHT: f64 = 0.04;
/// A single error counts as no farther than this: an accident does not close the door to everyone.
const FARTHEST: f64 = 0.5;
/// The standard deviation of normally distributed errors over their mean absolute value: the square root of pi / 2.
const DEVIATION_OVER_MEAN: f64 = 1.253_314;

/// A running average of how far measured is from predicted, either way, as a share.
/// Profiles are believed until measurements stray from them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread {
    mean: f64,
}

impl Spread {
    /// The standard deviation, as a share of what is predicted.
    pub(super) fn deviation(self) -> f64 {
        self.mean * DEVIATION_OVER_MEAN
    }

    /// Goes half of the way back to no errors at all.
    pub(super) fn doubt(&mut self) {
        self.mean /= 2.0;
    }

    /// Takes in the ratio of what was measured to what was predicted.
    pub(super) fn observe(&mut self, ratio: f64) {
        if ratio.is_finite() {
            let error = (ratio - 1.0).abs().min(FARTHEST);
            self.mean += WEIGHT * (error - self.mean);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_of_normal_errors_is_learned() {
        // The deciles of a normal distribution, in the middle of each tenth, in an order without drift.
        let deciles = [0.126, -1.645, 1.036, -0.385, 0.674, -1.036, 1.645, -0.674, 0.385, -0.126];
        let mut spread = Spread::default();
        for round in 0..400 {
            spread.observe(1.0 + 0.03 * deciles[round % deciles.len()]);
        }
        assert!((spread.deviation() / 0.03 - 1.0).abs() < 0.1, "{}", spread.deviation());
        (0..400).for_each(|_| spread.observe(1.0));
        assert!(spread.deviation() < 1e-6);
    }

    #[test]
    fn one_accident_does_not_close_the_door() {
        let mut spread = Spread::default();
        for ratio in [1e9, f64::INFINITY, f64::NAN] {
            spread.observe(ratio);
        }
        assert!(spread.deviation() < 0.03, "{}", spread.deviation());
    }
}
