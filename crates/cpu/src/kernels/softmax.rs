//! Owns softmax and its logarithm along the innermost axis.

use super::parts::for_each_part;
use crate::simd::{Simd, math};
use crate::{SharedOutput, SimdTask, Worker};

/// Fewest elements worth a task.
const LEAST_ELEMENTS: usize = 1024;

/// Which form of softmax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Softmax {
    /// `e^x / sum e^x`.
    Plain,
    /// `x - log(sum e^x)`.
    Logarithm,
}

impl Softmax {
    /// Computes softmax over rows of `columns` values.
    ///
    /// # Safety
    ///
    /// All workers of the run make the same call, and nothing else accesses the output until all have returned.
    ///
    /// # Panics
    ///
    /// If input and output differ in length, or are not whole rows.
    pub unsafe fn run(
        self,
        worker: &Worker,
        input: &[f32],
        columns: usize,
        output: SharedOutput<f32>,
    ) {
        assert_eq!(input.len(), output.len(), "elements of softmax");
        let rows = input.len().checked_div(columns).unwrap_or(0);
        assert_eq!(rows * columns, input.len(), "rows of softmax");
        for_each_part(worker, rows, LEAST_ELEMENTS.div_ceil(columns.max(1)), |rows| {
            let (start, count) = (rows.start * columns, rows.len() * columns);
            // SAFETY: parts do not overlap, and the caller keeps everyone else away.
            let output = unsafe { output.slice_mut(start, count) };
            output.copy_from_slice(&input[start..start + count]);
            worker.isa().run(Rows { kind: self, columns, values: output });
        });
    }
}

struct Rows<'a> {
    kind: Softmax,
    columns: usize,
    values: &'a mut [f32],
}

impl SimdTask for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in self.values.chunks_exact_mut(self.columns) {
            match self.kind {
                Softmax::Plain => softmax_row(simd, row),
                Softmax::Logarithm => log_softmax_row(simd, row),
            }
        }
    }
}

/// The greatest of some values; minus infinity if there are none.
#[inline(always)]
fn greatest<S: Simd>(simd: S, values: &[f32]) -> f32 {
    let mut most = [simd.splat(f32::NEG_INFINITY); 4];
    let (blocks, rest) = values.as_chunks::<64>();
    for block in blocks {
        for (index, chunk) in block.chunks_exact(S::LANES).enumerate() {
            most[index % 4] = simd.max(simd.load_slice(chunk), most[index % 4]);
        }
    }
    let mut scalar = f32::NEG_INFINITY;
    for &value in rest {
        scalar = scalar.max(value);
    }
    let most = simd.max(simd.max(most[0], most[1]), simd.max(most[2], most[3]));
    simd.max_lane(most).max(scalar)
}

/// Replaces a row by its softmax.
#[inline(always)]
pub(super) fn softmax_row<S: Simd>(simd: S, row: &mut [f32]) {
    let most = simd.splat(greatest(simd, row));
    let mut sums = simd.zero();
    for chunk in row.chunks_mut(S::LANES) {
        let value = math::exp(simd, simd.sub(simd.load_slice(chunk), most));
        simd.store_slice(chunk, value);
        // Lanes past the end hold the exponential of nothing real; a reload has zeros there.
        let value = if chunk.len() == S::LANES { value } else { simd.load_slice(chunk) };
        sums = simd.add(sums, value);
    }
    let factor = simd.splat(1.0 / simd.sum(sums));
    for chunk in row.chunks_mut(S::LANES) {
        simd.store_slice(chunk, simd.mul(simd.load_slice(chunk), factor));
    }
}

/// Replaces a row by the logarithm of its softmax.
#[inline(always)]
fn log_softmax_row<S: Simd>(simd: S, row: &mut [f32]) {
    let most = greatest(simd, row);
    let mut sums = simd.zero();
    for chunk in row.chunks(S::LANES) {
        let value = math::exp(simd, simd.sub(simd.load_slice(chunk), simd.splat(most)));
        let in_row = simd.load_slice(&ONES[..chunk.len().min(S::LANES)]);
        sums = simd.fma(value, in_row, sums);
    }
    let offset = simd.splat(most + simd.sum(sums).ln());
    for chunk in row.chunks_mut(S::LANES) {
        simd.store_slice(chunk, simd.sub(simd.load_slice(chunk), offset));
    }
}

static ONES: [f32; 16] = [1.0; 16];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{assert_close, run_on, supported_isas, values};

    #[test]
    fn rows_of_any_length() {
        for (rows, columns) in [(1, 1), (5, 3), (3, 64), (7, 1000), (2, 4099), (0, 9), (40, 77)] {
            let input: Vec<f32> = values(rows * columns, 7).iter().map(|x| x * 30.0).collect();
            for kind in [Softmax::Plain, Softmax::Logarithm] {
                let mut expected = Vec::new();
                for row in input.chunks(columns) {
                    let most = row.iter().fold(f32::MIN, |most, &x| most.max(x));
                    let exps = row.iter().map(|&x| f64::from(x - most).exp());
                    let sum: f64 = exps.clone().sum();
                    match kind {
                        Softmax::Plain => expected.extend(exps.map(|value| value / sum)),
                        Softmax::Logarithm => {
                            expected.extend(row.iter().map(|&x| f64::from(x - most) - sum.ln()));
                        }
                    }
                }
                for isa in supported_isas() {
                    let output = run_on(isa, input.len(), |worker, output| {
                        // SAFETY: every worker of the pool runs this.
                        unsafe { kind.run(worker, &input, columns, output) };
                    });
                    assert_close(&output, &expected, 2e-6, &format!("{kind:?} {rows}x{columns}"));
                }
            }
        }
    }
}
