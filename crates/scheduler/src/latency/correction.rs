//! What completions teach about one model: a factor on its predictions.

/// How much of the distance to a new ratio is gone; the last dozen or so completions count most.
const WEIGHT: f64 = 0.1;
/// A single ratio counts as no farther away than this factor: what is farther may be an accident, and if it is not, it
/// comes again.
const FARTHEST_STEP: f64 = 1.25;
/// Past this factor the profile is wrong and no longer a matter of correction.
const LARGEST: f64 = 4.0;

/// A running average of the logarithm of measured over predicted, so that twice and half as long weigh the same.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Correction {
    logarithm: f64,
}

impl Correction {
    /// A factor that was learned before.
    pub(super) fn of(factor: f64) -> Self {
        let largest = LARGEST.ln();
        Self { logarithm: factor.ln().clamp(-largest, largest) }
    }

    /// Goes half of the way back to the profile.
    pub(super) fn doubt(&mut self) {
        self.logarithm /= 2.0;
    }

    /// What a prediction is multiplied with.
    pub(super) fn factor(self) -> f64 {
        self.logarithm.exp()
    }

    /// Takes in the ratio of what was measured to what was predicted without correction. A ratio of nothing to
    /// something, or to nothing, says nothing.
    pub(super) fn observe(&mut self, ratio: f64) {
        if !(ratio.is_finite() && ratio > 0.0) {
            return;
        }
        let farthest = FARTHEST_STEP.ln();
        let distance = (ratio.ln() - self.logarithm).clamp(-farthest, farthest);
        let largest = LARGEST.ln();
        self.logarithm = (self.logarithm + WEIGHT * distance).clamp(-largest, largest);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_constant_bias_is_learned_under_noise(
            bias in 0.3f64..3.5, noise in prop::collection::vec(-0.1f64..0.1, 400),
        ) {
            let mut correction = Correction::default();
            let mut late = Vec::new();
            for (index, noise) in noise.iter().enumerate() {
                correction.observe(bias * (1.0 + noise));
                late.extend((index >= 200).then(|| correction.factor() / bias));
            }
            prop_assert!(late.iter().all(|ratio| (0.93..1.07).contains(ratio)), "{late:?}");
            let mean = late.iter().sum::<f64>() / late.len() as f64;
            prop_assert!((mean - 1.0).abs() < 0.02, "{mean}");
        }
    }

    #[test]
    fn one_outlier_moves_it_by_a_few_percent_at_most() {
        for outlier in [1e-6, 100.0, 1e300] {
            let mut correction = Correction::default();
            (0..50).for_each(|_| correction.observe(1.2));
            let before = correction.factor();
            correction.observe(outlier);
            assert!((correction.factor() / before - 1.0).abs() < 0.025, "{outlier}");
        }
    }

    #[test]
    fn it_stays_within_bounds_and_ignores_what_is_no_ratio() {
        let mut correction = Correction::default();
        (0..10_000).for_each(|_| correction.observe(1e9));
        assert!((correction.factor() - LARGEST).abs() < 1e-9);
        (0..10_000).for_each(|_| correction.observe(1e-9));
        assert!((correction.factor() - 1.0 / LARGEST).abs() < 1e-9);
        let before = correction.factor();
        for ratio in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            correction.observe(ratio);
        }
        assert_eq!(correction.factor(), before);
    }
}
