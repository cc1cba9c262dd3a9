//! Owns normalisation of rows: to mean zero and variance one, or to a mean square of one.

use super::parts::for_each_part;
use crate::simd::Simd;
use crate::{SharedOutput, SimdTask, Worker};

/// Fewest elements worth a task.
const LEAST_ELEMENTS: usize = 2048;

/// Which statistics a row is normalised by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Normalisation {
    /// Mean and variance.
    Layer,
    /// The mean square.
    RootMeanSquare,
}

/// Normalisation of rows, the innermost axes, with a factor and a term per column.
#[derive(Debug, Clone)]
pub struct Normalise {
    kind: Normalisation,
    epsilon: f32,
    scale: Vec<f32>,
    shift: Vec<f32>,
}

impl Normalise {
    /// Prepares the kernel; rows are as long as `scale`.
    ///
    /// # Panics
    ///
    /// If there are no columns, or not as many factors as terms.
    pub fn new(kind: Normalisation, epsilon: f32, scale: &[f32], shift: Option<&[f32]>) -> Self {
        assert!(!scale.is_empty(), "normalisation of rows without columns");
        let shift = shift.map_or_else(|| vec![0.0; scale.len()], <[f32]>::to_vec);
        assert_eq!(scale.len(), shift.len(), "columns of a normalisation");
        Self { kind, epsilon, scale: scale.to_vec(), shift }
    }

    /// Normalises `input`, or `input + residual`; the sum itself goes to `sum` where that is asked for.
    ///
    /// # Safety
    ///
    /// All workers of the run make the same call, and nothing else accesses the outputs until all have returned.
    ///
    /// # Panics
    ///
    /// If the slices differ in length or are not whole rows.
    pub unsafe fn run(
        &self,
        worker: &Worker,
        input: &[f32],
        residual: Option<&[f32]>,
        sum: Option<SharedOutput<f32>>,
        output: SharedOutput<f32>,
    ) {
        let columns = self.scale.len();
        assert!(input.len().is_multiple_of(columns), "rows of a normalisation");
        assert_eq!(input.len(), output.len(), "elements of a normalisation");
        if let Some(residual) = residual {
            assert_eq!(input.len(), residual.len(), "residual of a normalisation");
        }
        if let Some(sum) = sum {
            assert_eq!(input.len(), sum.len(), "sum of a normalisation");
        }
        for_each_part(worker, input.len() / columns, LEAST_ELEMENTS.div_ceil(columns), |rows| {
            for start in rows.map(|row| row * columns) {
                // SAFETY: rows do not overlap, and the caller keeps everyone else away.
                let (output, sum) = unsafe {
                    (output.slice_mut(start, columns), sum.map(|sum| sum.slice_mut(start, columns)))
                };
                worker.isa().run(Row {
                    kernel: self,
                    input: &input[start..start + columns],
                    residual: residual.map(|residual| &residual[start..start + columns]),
                    sum,
                    output,
                });
            }
        });
    }
}

struct Row<'a> {
    kernel: &'a Normalise,
    input: &'a [f32],
    residual: Option<&'a [f32]>,
    sum: Option<&'a mut [f32]>,
    output: &'a mut [f32],
}

impl SimdTask for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { kernel, input, residual, sum, output } = self;
        // The output holds the row until it is normalised in place.
        match residual {
            Some(residual) => {
                let operands = input.chunks(S::LANES).zip(residual.chunks(S::LANES));
                for (output, (a, b)) in output.chunks_mut(S::LANES).zip(operands) {
                    simd.store_slice(output, simd.add(simd.load_slice(a), simd.load_slice(b)));
                }
            }
            None => output.copy_from_slice(input),
        }
        if let Some(sum) = sum {
            sum.copy_from_slice(output);
        }
        let count = output.len() as f32;
        let mean = match kernel.kind {
            Normalisation::Layer => total(simd, output) / count,
            Normalisation::RootMeanSquare => 0.0,
        };
        let variance = total_square(simd, output, mean) / count;
        let factor = simd.splat(1.0 / (variance + kernel.epsilon).sqrt());
        let mean = simd.splat(mean);
        let constants = kernel.scale.chunks(S::LANES).zip(kernel.shift.chunks(S::LANES));
        for (chunk, (scale, shift)) in output.chunks_mut(S::LANES).zip(constants) {
            let value = simd.mul(simd.sub(simd.load_slice(chunk), mean), factor);
            let value = simd.fma(value, simd.load_slice(scale), simd.load_slice(shift));
            simd.store_slice(chunk, value);
        }
    }
}

/// The sum of some values.
#[inline(always)]
fn total<S: Simd>(simd: S, values: &[f32]) -> f32 {
    let mut sums = [simd.zero(); 4];
    let blocks = values.chunks_exact(4 * S::LANES);
    let rest = blocks.remainder();
    for block in blocks {
        for (sum, chunk) in sums.iter_mut().zip(block.chunks_exact(S::LANES)) {
            *sum = simd.add(*sum, simd.load_slice(chunk));
        }
    }
    for (sum, chunk) in sums.iter_mut().zip(rest.chunks(S::LANES)) {
        *sum = simd.add(*sum, simd.load_slice(chunk));
    }
    simd.sum(simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3])))
}

/// The sum of squared distances from `mean`.
#[inline(always)]
fn total_square<S: Simd>(simd: S, values: &[f32], mean: f32) -> f32 {
    let center = simd.splat(mean);
    let mut sums = [simd.zero(); 4];
    let (whole, rest) = values.split_at(values.len() / S::LANES * S::LANES);
    let blocks = whole.chunks_exact(4 * S::LANES);
    let tail = blocks.remainder();
    for block in blocks {
        for (sum, chunk) in sums.iter_mut().zip(block.chunks_exact(S::LANES)) {
            let distance = simd.sub(simd.load_slice(chunk), center);
            *sum = simd.fma(distance, distance, *sum);
        }
    }
    for (sum, chunk) in sums.iter_mut().zip(tail.chunks_exact(S::LANES)) {
        let distance = simd.sub(simd.load_slice(chunk), center);
        *sum = simd.fma(distance, distance, *sum);
    }
    // The lanes past the end are not zero once the mean is subtracted, so the rest goes one by one.
    let rest: f32 = rest.iter().map(|&value| (value - mean) * (value - mean)).sum();
    simd.sum(simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3]))) + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{assert_close, run_on, supported_isas, values};

    fn expected(kernel: &Normalise, rows: &[f64]) -> Vec<f64> {
        let columns = kernel.scale.len();
        let mut result = Vec::new();
        for row in rows.chunks(columns) {
            let count = columns as f64;
            let mean = match kernel.kind {
                Normalisation::Layer => row.iter().sum::<f64>() / count,
                Normalisation::RootMeanSquare => 0.0,
            };
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            let factor = 1.0 / (variance + f64::from(kernel.epsilon)).sqrt();
            for ((x, &scale), &shift) in row.iter().zip(&kernel.scale).zip(&kernel.shift) {
                result.push((x - mean) * factor * f64::from(scale) + f64::from(shift));
            }
        }
        result
    }

    #[test]
    fn rows_with_and_without_residual() {
        for (rows, columns) in [(1, 1), (4, 5), (3, 64), (9, 384), (2, 773), (0, 8)] {
            for kind in [Normalisation::Layer, Normalisation::RootMeanSquare] {
                let input: Vec<f32> = values(rows * columns, 1).iter().map(|x| x + 3.0).collect();
                let residual = values(rows * columns, 2);
                let shift = values(columns, 4);
                let kernel = Normalise::new(kind, 1e-5, &values(columns, 3), Some(&shift));
                for isa in supported_isas() {
                    let alone = run_on(isa, input.len(), |worker, output| {
                        // SAFETY: every worker of the pool runs this.
                        unsafe { kernel.run(worker, &input, None, None, output) };
                    });
                    let plain: Vec<f64> = input.iter().map(|&x| f64::from(x)).collect();
                    assert_close(&alone, &expected(&kernel, &plain), 3e-6, "alone");
                    let both = run_on(isa, 2 * input.len(), |worker, output| {
                        let sum = output.part(input.len(), input.len());
                        let output = output.part(0, input.len());
                        // SAFETY: every worker of the pool runs this.
                        unsafe {
                            kernel.run(worker, &input, Some(&residual), Some(sum), output);
                        }
                    });
                    let sums: Vec<f64> =
                        input.iter().zip(&residual).map(|(&a, &b)| f64::from(a + b)).collect();
                    let (normalised, sum) = both.split_at(input.len());
                    assert_close(normalised, &expected(&kernel, &sums), 3e-6, "with residual");
                    assert_close(sum, &sums, 0.0, "sum");
                }
            }
        }
    }
}
