//! What products must be: some outputs of a tenant in double precision, and how far others are from them.

use super::ProductShape;
use super::seat::{Operands, mixed};

/// Outputs that are computed on the host; all, where there are no more.
const MAX_SAMPLES: usize = 512;

/// How far a sum of `k` products of numbers up to one may be off, by the root of `k`: far more than f32's rounding
/// adds up to, and far less than that of shorter formats.
const TOLERANCE: f64 = 1e-5;

/// Outputs of one tenant.
pub(super) struct Expected {
    /// Places and sums.
    samples: Vec<(usize, f64)>,
    tolerance: f64,
}

/// The output that is furthest from what it must be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Deviation {
    /// How far it is off, as a share of what is tolerated; infinite where it is no number.
    pub share: f64,
    /// Whose output it is.
    pub tenant: usize,
    /// Its place among the tenant's.
    pub place: usize,
}

impl Deviation {
    /// True where the results are wrong.
    pub fn is_wrong(&self) -> bool {
        self.share > 1.0
    }

    pub(super) fn or_worse(self, other: Self) -> Self {
        if other.share > self.share { other } else { self }
    }
}

impl Expected {
    pub(super) fn new(shape: &ProductShape, operands: &Operands, tenant: u64) -> Self {
        let outputs = shape.m * shape.n;
        let sum = |place: usize| {
            let (row, column) = (place / shape.n, place % shape.n);
            let row = &operands.weights[row * shape.k..][..shape.k];
            let column = operands.input[column..].iter().step_by(shape.n);
            let terms = row.iter().zip(column).map(|(&a, &b)| f64::from(a) * f64::from(b));
            (place, terms.sum())
        };
        let place = |at: usize| match outputs <= MAX_SAMPLES {
            true => at,
            false => (mixed(tenant << 32 | at as u64) % outputs as u64) as usize,
        };
        let samples = (0..outputs.min(MAX_SAMPLES)).map(|at| sum(place(at))).collect();
        Self { samples, tolerance: TOLERANCE * (shape.k as f64).sqrt() }
    }

    /// How far outputs are off: the worst of the samples, or any that is no number.
    pub(super) fn deviation(&self, outputs: &[f32], tenant: usize) -> Deviation {
        if let Some(place) = outputs.iter().position(|output| !output.is_finite()) {
            return Deviation { share: f64::INFINITY, tenant, place };
        }
        let shares = self.samples.iter().map(|&(place, sum)| {
            let share = (f64::from(outputs[place]) - sum).abs() / self.tolerance;
            Deviation { share, tenant, place }
        });
        shares.fold(Deviation { share: 0.0, tenant, place: 0 }, Deviation::or_worse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(shape: &ProductShape, operands: &Operands) -> Vec<f32> {
        let output = |place: usize| -> f32 {
            let (row, column) = (place / shape.n, place % shape.n);
            (0..shape.k)
                .map(|k| operands.weights[row * shape.k + k] * operands.input[k * shape.n + column])
                .sum()
        };
        (0..shape.m * shape.n).map(output).collect()
    }

    #[test]
    fn what_is_wrong_is_found_and_rounding_is_not() {
        for shape in [ProductShape { m: 9, n: 7, k: 300 }, ProductShape { m: 40, n: 30, k: 5 }] {
            let operands = Operands::random(&shape, 3);
            let expected = Expected::new(&shape, &operands, 3);
            let right = product(&shape, &operands);
            let deviation = expected.deviation(&right, 3);
            assert!(!deviation.is_wrong() && deviation.share > 0.0, "{deviation:?}");

            let mut missing = right.clone();
            missing[shape.n] = f32::NAN;
            let deviation = expected.deviation(&missing, 3);
            assert!(deviation.is_wrong());
            assert_eq!((deviation.tenant, deviation.place), (3, shape.n));

            let mut wrong = right.clone();
            let (sampled, _) = expected.samples[5];
            wrong[sampled] += 0.01;
            let deviation = expected.deviation(&wrong, 3);
            assert!(deviation.is_wrong() && deviation.place == sampled);

            // A mantissa of ten bits, as tensor cores read f32.
            let short = |values: &[f32]| -> Vec<f32> {
                values.iter().map(|value| f32::from_bits(value.to_bits() & !0x1FFF)).collect()
            };
            let short =
                Operands { weights: short(&operands.weights), input: short(&operands.input) };
            assert!(expected.deviation(&product(&shape, &short), 3).is_wrong());
        }
    }
}
