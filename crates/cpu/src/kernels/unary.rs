//! Owns functions of one element.

use std::ops::Range;

use super::parts::for_each_part;
use crate::simd::{Simd, math};
use crate::{Activation, SharedOutput, SimdTask, Worker};

/// Fewest elements worth a task.
const LEAST_ELEMENTS: usize = 4096;

/// A function of one element.
#[derive(Debug, Clone, Copy)]
pub enum UnaryKernel {
    /// An activation.
    Activation(Activation),
    /// The absolute value.
    Abs,
    /// The opposite.
    Neg,
    /// One divided by the element.
    Reciprocal,
    /// The square root.
    Sqrt,
    /// The exponential.
    Exp,
    /// The natural logarithm.
    Log,
    /// The error function.
    Erf,
    /// The greatest integer that is not above.
    Floor,
    /// The least integer that is not below.
    Ceil,
    /// The nearest integer, halves to even.
    Round,
    /// `log(1 + e^x)`.
    Softplus,
    /// `x / (1 + |x|)`.
    Softsign,
    /// `x * tanh(softplus(x))`.
    Mish,
    /// Any other function, element by element.
    Scalar(fn(f32) -> f32),
}

impl UnaryKernel {
    /// Computes the function of every element.
    ///
    /// # Safety
    ///
    /// All workers of the run make the same call, and nothing else accesses the output until all have returned.
    ///
    /// # Panics
    ///
    /// If input and output differ in length.
    pub unsafe fn run(self, worker: &Worker, input: &[f32], output: SharedOutput<f32>) {
        assert_eq!(input.len(), output.len(), "elements of a unary function");
        for_each_part(worker, input.len(), LEAST_ELEMENTS, |range: Range<usize>| {
            // SAFETY: parts do not overlap, and the caller keeps everyone else away.
            let output = unsafe { output.slice_mut(range.start, range.len()) };
            worker.isa().run(Map { function: self, input: &input[range], output });
        });
    }

    /// The function of a vector.
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, x: S::F32) -> S::F32 {
        let one = simd.splat(1.0);
        match self {
            UnaryKernel::Activation(activation) => activation.apply(simd, x),
            UnaryKernel::Abs => simd.abs(x),
            UnaryKernel::Neg => simd.neg(x),
            UnaryKernel::Reciprocal => simd.div(one, x),
            UnaryKernel::Sqrt => simd.sqrt(x),
            UnaryKernel::Exp => math::exp(simd, x),
            UnaryKernel::Log => math::ln(simd, x),
            UnaryKernel::Erf => math::erf(simd, x),
            UnaryKernel::Floor => simd.floor(x),
            UnaryKernel::Ceil => simd.neg(simd.floor(simd.neg(x))),
            UnaryKernel::Round => simd.round(x),
            UnaryKernel::Softplus => softplus(simd, x),
            UnaryKernel::Softsign => simd.div(x, simd.add(one, simd.abs(x))),
            UnaryKernel::Mish => simd.mul(x, math::tanh(simd, softplus(simd, x))),
            UnaryKernel::Scalar(_) => x,
        }
    }
}

/// `log(1 + e^x)` without overflow.
#[inline(always)]
fn softplus<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    let one = simd.splat(1.0);
    let small = math::exp(simd, simd.neg(simd.abs(x)));
    // The sum loses digits of the exponential; dividing by what it kept of it corrects the logarithm.
    let sum = simd.add(one, small);
    let kept = simd.sub(sum, one);
    let corrected = simd.div(simd.mul(math::ln(simd, sum), small), kept);
    let logarithm = simd.select(simd.eq(kept, simd.zero()), small, corrected);
    simd.add(simd.max(simd.zero(), x), logarithm)
}

struct Map<'a> {
    function: UnaryKernel,
    input: &'a [f32],
    output: &'a mut [f32],
}

impl SimdTask for Map<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        if let UnaryKernel::Scalar(function) = self.function {
            for (output, &input) in self.output.iter_mut().zip(self.input) {
                *output = function(input);
            }
            return;
        }
        for (output, input) in self.output.chunks_mut(S::LANES).zip(self.input.chunks(S::LANES)) {
            let value = self.function.apply(simd, simd.load_slice(input));
            simd.store_slice(output, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{run_on, supported_isas, values};

    #[test]
    fn functions_match_their_formulas() {
        type Formula = fn(f64) -> f64;
        let cases: [(UnaryKernel, Formula); 14] = [
            (UnaryKernel::Activation(Activation::Relu), |x| x.max(0.0)),
            (UnaryKernel::Abs, f64::abs),
            (UnaryKernel::Neg, |x| -x),
            (UnaryKernel::Reciprocal, |x| 1.0 / x),
            (UnaryKernel::Sqrt, f64::sqrt),
            (UnaryKernel::Exp, f64::exp),
            (UnaryKernel::Log, f64::ln),
            (UnaryKernel::Floor, f64::floor),
            (UnaryKernel::Ceil, f64::ceil),
            (UnaryKernel::Round, f64::round_ties_even),
            (UnaryKernel::Softplus, |x| x.max(0.0) + (-x.abs()).exp().ln_1p()),
            (UnaryKernel::Softsign, |x| x / (1.0 + x.abs())),
            (UnaryKernel::Mish, |x| x * (x.max(0.0) + (-x.abs()).exp().ln_1p()).tanh()),
            (UnaryKernel::Scalar(f32::cos), f64::cos),
        ];
        for elements in [0, 1, 13, 20_003] {
            let input: Vec<f32> = values(elements, 5).iter().map(|x| x * 12.0).collect();
            for (function, formula) in cases {
                for isa in supported_isas() {
                    let output = run_on(isa, elements, |worker, output| {
                        // SAFETY: every worker of the pool runs this.
                        unsafe { function.run(worker, &input, output) };
                    });
                    for (&x, &y) in input.iter().zip(&output) {
                        let expected = formula(f64::from(x));
                        if expected.is_nan() {
                            assert!(y.is_nan(), "{function:?}({x}) = {y}");
                            continue;
                        }
                        let error = (f64::from(y) - expected).abs();
                        let bound = 2e-6 * expected.abs().max(1e-3);
                        assert!(error <= bound, "{function:?}({x}) = {y}, not {expected}");
                    }
                }
            }
        }
    }
}
