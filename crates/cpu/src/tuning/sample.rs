//! Some elements of a result, by which a kernel is checked.

use super::random::Random;

/// How many elements are drawn, where they are cheap to compute.
const MOST_ELEMENTS: usize = 2000;

/// How many elements are drawn at least.
const LEAST_ELEMENTS: usize = 200;

/// How many products may be summed for all elements together.
const MOST_TERMS: usize = 4 << 20;

/// The share of the norm by which right results may differ from exact ones.
const TOLERANCE: f64 = 1e-4;

/// Elements and what they must be.
pub(super) struct Sample {
    positions: Vec<usize>,
    expected: Vec<f64>,
}

impl Sample {
    /// Draws elements of a result of the given shape, each a sum of `terms` products; ends of the axes come as often as all
    /// between them, since that is where kernels cut corners.
    pub(super) fn draw(
        random: &mut Random,
        shape: &[usize],
        terms: usize,
        element: impl Fn(usize) -> f64,
    ) -> Self {
        let count = (MOST_TERMS / terms.max(1)).clamp(LEAST_ELEMENTS, MOST_ELEMENTS);
        let mut positions: Vec<usize> = (0..count)
            .map(|_| {
                shape.iter().fold(0, |position, &size| {
                    let place = match random.below(4) {
                        0 => 0,
                        1 => size - 1,
                        _ => random.below(size),
                    };
                    position * size + place
                })
            })
            .collect();
        positions.sort_unstable();
        positions.dedup();
        let expected = positions.iter().map(|&position| element(position)).collect();
        Self { positions, expected }
    }

    /// How far a result is from what it must be, as a share of the norm; not a number where an element is none.
    pub(super) fn error(&self, result: &[f32]) -> f64 {
        if result.iter().any(|value| !value.is_finite()) {
            return f64::NAN;
        }
        let (mut difference, mut norm) = (0.0, 0.0);
        for (&position, &expected) in self.positions.iter().zip(&self.expected) {
            difference += (f64::from(result[position]) - expected).powi(2);
            norm += expected.powi(2);
        }
        (difference / norm.max(f64::MIN_POSITIVE)).sqrt()
    }

    /// Whether rounding explains the error.
    pub(super) fn tolerates(error: f64) -> bool {
        error <= TOLERANCE
    }
}
