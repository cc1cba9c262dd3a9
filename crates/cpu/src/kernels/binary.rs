//! Owns functions of two elements, with broadcasting and an activation.

use super::activate::activate;
use super::broadcast::{Broadcast, BroadcastError, Run};
use super::parts::for_each_part;
use crate::simd::Simd;
use crate::{Activation, SharedOutput, SimdTask, Worker};

/// Fewest elements worth a task.
const LEAST_ELEMENTS: usize = 4096;

/// How many elements are computed before their activation, so that they are still in the first-level cache.
const CHUNK: usize = 1024;

/// A function of two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryFunction {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a / b`.
    Div,
    /// The greater.
    Max,
    /// The lesser.
    Min,
    /// `a` to the power `b`.
    Pow,
}

/// A function of the elements of two tensors that broadcast to one shape.
#[derive(Debug, Clone)]
pub struct BinaryKernel {
    function: BinaryFunction,
    activation: Activation,
    walk: Broadcast<2>,
}

impl BinaryKernel {
    /// Prepares the function for operands of the given shapes.
    pub fn new(
        function: BinaryFunction,
        a: &[usize],
        b: &[usize],
        activation: Activation,
    ) -> Result<Self, BroadcastError> {
        Ok(Self { function, activation, walk: Broadcast::new([a, b])? })
    }

    /// The shape of the result.
    pub fn output_shape(&self) -> &[usize] {
        self.walk.shape()
    }

    /// Computes the function of every pair of elements, then the activation.
    ///
    /// # Safety
    ///
    /// All workers of the run make the same call, and nothing else accesses the output until all have returned.
    ///
    /// # Panics
    ///
    /// If a slice has another length than its shape.
    pub unsafe fn run(&self, worker: &Worker, a: &[f32], b: &[f32], output: SharedOutput<f32>) {
        assert_eq!([a.len(), b.len()], self.walk.lengths(), "operands of a binary function");
        assert_eq!(output.len(), self.walk.elements(), "result of a binary function");
        for_each_part(worker, output.len(), LEAST_ELEMENTS, |range| {
            // SAFETY: parts do not overlap, and the caller keeps everyone else away.
            let part = unsafe { output.slice_mut(range.start, range.len()) };
            worker.isa().run(Part { kernel: self, a, b, first: range.start, output: part });
        });
    }
}

/// Some consecutive results.
struct Part<'a> {
    kernel: &'a BinaryKernel,
    a: &'a [f32],
    b: &'a [f32],
    first: usize,
    output: &'a mut [f32],
}

/// A function that vectors have.
trait VectorFunction {
    fn apply<S: Simd>(simd: S, a: S::F32, b: S::F32) -> S::F32;
}

macro_rules! vector_functions {
    ($($name:ident: $method:ident;)*) => {$(
        struct $name;
        impl VectorFunction for $name {
            #[inline(always)]
            fn apply<S: Simd>(simd: S, a: S::F32, b: S::F32) -> S::F32 {
                simd.$method(a, b)
            }
        }
    )*};
}
vector_functions! { Add: add; Sub: sub; Mul: mul; Div: div; Max: max; Min: min; }

impl SimdTask for Part<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match self.kernel.function {
            BinaryFunction::Add => self.map::<S, Add>(simd),
            BinaryFunction::Sub => self.map::<S, Sub>(simd),
            BinaryFunction::Mul => self.map::<S, Mul>(simd),
            BinaryFunction::Div => self.map::<S, Div>(simd),
            BinaryFunction::Max => self.map::<S, Max>(simd),
            BinaryFunction::Min => self.map::<S, Min>(simd),
            BinaryFunction::Pow => self.power(simd),
        }
    }
}

impl Part<'_> {
    #[inline(always)]
    fn map<S: Simd, F: VectorFunction>(self, simd: S) {
        let Self { kernel, a, b, first, output } = self;
        let strides = kernel.walk.run_strides();
        for run in kernel.walk.runs(first..first + output.len()) {
            map_run::<S, F>(simd, kernel.activation, strides, a, b, run, first, output);
        }
    }

    #[inline(always)]
    fn power<S: Simd>(self, simd: S) {
        let Self { kernel, a, b, first, output } = self;
        let strides = kernel.walk.run_strides();
        for run in kernel.walk.runs(first..first + output.len()) {
            let target = &mut output[run.start - first..][..run.count];
            power_run(strides, a, b, run, target);
            if kernel.activation != Activation::None {
                activate(simd, kernel.activation, target);
            }
        }
    }
}

/// Computes one run.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn map_run<S: Simd, F: VectorFunction>(
    simd: S,
    activation: Activation,
    strides: [usize; 2],
    a: &[f32],
    b: &[f32],
    run: Run<2>,
    first: usize,
    output: &mut [f32],
) {
    let mut done = 0;
    while done < run.count {
        let count = (run.count - done).min(CHUNK);
        let target = &mut output[run.start - first + done..][..count];
        let a = &a[run.offsets[0] + done * strides[0]..];
        let b = &b[run.offsets[1] + done * strides[1]..];
        match strides {
            [0, 0] => {
                target.fill(simd.max_lane(F::apply(simd, simd.splat(a[0]), simd.splat(b[0]))))
            }
            [_, 0] => {
                let b = simd.splat(b[0]);
                for (target, a) in target.chunks_mut(S::LANES).zip(a[..count].chunks(S::LANES)) {
                    simd.store_slice(target, F::apply(simd, simd.load_slice(a), b));
                }
            }
            [0, _] => {
                let a = simd.splat(a[0]);
                for (target, b) in target.chunks_mut(S::LANES).zip(b[..count].chunks(S::LANES)) {
                    simd.store_slice(target, F::apply(simd, a, simd.load_slice(b)));
                }
            }
            _ => {
                let operands = a[..count].chunks(S::LANES).zip(b[..count].chunks(S::LANES));
                for (target, (a, b)) in target.chunks_mut(S::LANES).zip(operands) {
                    let value = F::apply(simd, simd.load_slice(a), simd.load_slice(b));
                    simd.store_slice(target, value);
                }
            }
        }
        if activation != Activation::None {
            activate(simd, activation, target);
        }
        done += count;
    }
}

/// Powers have no vector form that is right for all signs; the usual constant exponents need none.
#[inline(always)]
fn power_run(strides: [usize; 2], a: &[f32], b: &[f32], run: Run<2>, target: &mut [f32]) {
    let (a, b) = (&a[run.offsets[0]..], &b[run.offsets[1]..]);
    let exponent = (strides[1] == 0 && strides[0] == 1).then(|| b[0]);
    let a_run = if strides[0] == 1 { &a[..run.count] } else { a };
    match exponent {
        Some(2.0) => target.iter_mut().zip(a_run).for_each(|(y, &x)| *y = x * x),
        Some(3.0) => target.iter_mut().zip(a_run).for_each(|(y, &x)| *y = x * x * x),
        Some(0.5) => target.iter_mut().zip(a_run).for_each(|(y, &x)| *y = x.sqrt()),
        Some(-1.0) => target.iter_mut().zip(a_run).for_each(|(y, &x)| *y = 1.0 / x),
        _ => {
            for (index, y) in target.iter_mut().enumerate() {
                *y = a[index * strides[0]].powf(b[index * strides[1]]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernels::testing::{assert_close, run_on, supported_isas, values};

    fn index_of(shape: &[usize], output: &[usize], mut index: usize) -> usize {
        let (mut offset, mut stride) = (0, 1);
        for axis in (0..output.len()).rev() {
            let place = index % output[axis];
            index /= output[axis];
            if let Some(own) = (axis + shape.len()).checked_sub(output.len()) {
                if shape[own] != 1 {
                    offset += place * stride;
                }
                stride *= shape[own];
            }
        }
        offset
    }

    fn check(function: BinaryFunction, a_shape: &[usize], b_shape: &[usize], is_fused: bool) {
        let activation = if is_fused { Activation::Relu } else { Activation::None };
        let kernel = BinaryKernel::new(function, a_shape, b_shape, activation).unwrap();
        let a: Vec<f32> =
            values(a_shape.iter().product(), 1).iter().map(|x| x.abs() + 0.5).collect();
        let b: Vec<f32> = values(b_shape.iter().product(), 2).iter().map(|x| x + 2.0).collect();
        let shape = kernel.output_shape().to_vec();
        let expected: Vec<f64> = (0..shape.iter().product())
            .map(|index| {
                let x = f64::from(a[index_of(a_shape, &shape, index)]);
                let y = f64::from(b[index_of(b_shape, &shape, index)]);
                let value = match function {
                    BinaryFunction::Add => x + y,
                    BinaryFunction::Sub => x - y,
                    BinaryFunction::Mul => x * y,
                    BinaryFunction::Div => x / y,
                    BinaryFunction::Max => x.max(y),
                    BinaryFunction::Min => x.min(y),
                    BinaryFunction::Pow => x.powf(y),
                };
                if is_fused { value.max(0.0) } else { value }
            })
            .collect();
        for isa in supported_isas() {
            let output = run_on(isa, expected.len(), |worker, output| {
                // SAFETY: every worker of the pool runs this.
                unsafe { kernel.run(worker, &a, &b, output) };
            });
            assert_close(
                &output,
                &expected,
                1e-6,
                &format!("{function:?} {a_shape:?} {b_shape:?}"),
            );
        }
    }

    const FUNCTIONS: [BinaryFunction; 7] = [
        BinaryFunction::Add,
        BinaryFunction::Sub,
        BinaryFunction::Mul,
        BinaryFunction::Div,
        BinaryFunction::Max,
        BinaryFunction::Min,
        BinaryFunction::Pow,
    ];

    #[test]
    fn shapes_of_networks() {
        let shapes: [(&[usize], &[usize]); 7] = [
            (&[3, 5000], &[3, 5000]),
            (&[3, 4999], &[]),
            (&[], &[3, 700]),
            (&[2, 9, 33], &[33]),
            (&[2, 7, 7, 24], &[2, 1, 1, 24]),
            (&[4, 1, 3], &[2, 1]),
            (&[], &[]),
        ];
        for function in FUNCTIONS {
            for (a, b) in shapes {
                check(function, a, b, true);
                check(function, b, a, false);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn odd_shapes(
            axes in prop::collection::vec((1usize..6, 0u8..3), 0..6),
            function in 0usize..7,
            skipped in 0usize..3,
        ) {
            let a: Vec<usize> = axes.iter().map(|&(size, kind)| if kind == 1 { 1 } else { size }).collect();
            let b: Vec<usize> = axes.iter().map(|&(size, kind)| if kind == 2 { 1 } else { size }).collect();
            check(FUNCTIONS[function], &a, &b[skipped.min(b.len())..], false);
        }
    }
}
