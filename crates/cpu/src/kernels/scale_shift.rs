//! Owns the scaling and shifting of channels: a batch normalisation that nothing absorbed.

use super::parts::for_each_part;
use crate::simd::Simd;
use crate::{Activation, SharedOutput, SimdTask, Worker};

/// Fewest elements worth a task.
const LEAST_ELEMENTS: usize = 4096;

/// One factor and one term per channel, the innermost axis.
#[derive(Debug, Clone)]
pub struct ScaleShift {
    scale: Vec<f32>,
    shift: Vec<f32>,
    activation: Activation,
}

impl ScaleShift {
    /// Prepares the kernel.
    ///
    /// # Panics
    ///
    /// If there are no channels, or not as many factors as terms.
    pub fn new(scale: &[f32], shift: &[f32], activation: Activation) -> Self {
        assert_eq!(scale.len(), shift.len(), "channels of scale and shift");
        assert!(!scale.is_empty(), "scale and shift of no channels");
        Self { scale: scale.to_vec(), shift: shift.to_vec(), activation }
    }

    /// Computes `activation(x * scale + shift)`.
    ///
    /// # Safety
    ///
    /// All workers of the run make the same call, and nothing else accesses the output until all have returned.
    ///
    /// # Panics
    ///
    /// If input and output differ in length, or are not whole rows of channels.
    pub unsafe fn run(&self, worker: &Worker, input: &[f32], output: SharedOutput<f32>) {
        let channels = self.scale.len();
        assert_eq!(input.len(), output.len(), "elements of scale and shift");
        assert!(input.len().is_multiple_of(channels), "rows of scale and shift");
        let rows = input.len() / channels;
        for_each_part(worker, rows, LEAST_ELEMENTS.div_ceil(channels), |rows| {
            let (start, count) = (rows.start * channels, rows.len() * channels);
            // SAFETY: parts do not overlap, and the caller keeps everyone else away.
            let output = unsafe { output.slice_mut(start, count) };
            worker.isa().run(Rows { kernel: self, input: &input[start..start + count], output });
        });
    }
}

struct Rows<'a> {
    kernel: &'a ScaleShift,
    input: &'a [f32],
    output: &'a mut [f32],
}

impl SimdTask for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let ScaleShift { scale, shift, activation } = self.kernel;
        let channels = scale.len();
        let rows = self.output.chunks_exact_mut(channels).zip(self.input.chunks_exact(channels));
        for (output, input) in rows {
            let constants = scale.chunks(S::LANES).zip(shift.chunks(S::LANES));
            let values = output.chunks_mut(S::LANES).zip(input.chunks(S::LANES));
            for ((output, input), (scale, shift)) in values.zip(constants) {
                let (scale, shift) = (simd.load_slice(scale), simd.load_slice(shift));
                let value = simd.fma(simd.load_slice(input), scale, shift);
                simd.store_slice(output, activation.apply(simd, value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{assert_close, run_on, supported_isas, values};

    #[test]
    fn channels_have_their_own_factor_and_term() {
        for (rows, channels) in [(1, 1), (3, 7), (50, 200), (0, 5)] {
            let (scale, shift) = (values(channels, 1), values(channels, 2));
            let input = values(rows * channels, 3);
            for activation in [Activation::None, Activation::Relu, Activation::HardSwish] {
                let kernel = ScaleShift::new(&scale, &shift, activation);
                let expected: Vec<f64> = (0..input.len())
                    .map(|index| {
                        let (scale, shift) = (scale[index % channels], shift[index % channels]);
                        let value = f64::from(input[index]) * f64::from(scale) + f64::from(shift);
                        activation.in_double(value)
                    })
                    .collect();
                for isa in supported_isas() {
                    let output = run_on(isa, input.len(), |worker, output| {
                        // SAFETY: every worker of the pool runs this.
                        unsafe { kernel.run(worker, &input, output) };
                    });
                    assert_close(&output, &expected, 1e-6, &format!("{isa:?} {activation:?}"));
                }
            }
        }
    }
}
