//! Owns reductions over any axes.

use std::ops::Range;

use super::parts::for_each_part;
use crate::simd::Simd;
use crate::{SharedOutput, SimdTask, Worker};

/// Fewest elements worth a task.
const LEAST_ELEMENTS: usize = 4096;

/// Vectors of results that are computed together.
const VECTORS: usize = 4;

/// What elements are reduced to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The greatest.
    Max,
    /// The least.
    Min,
}

/// Axes that do not exist, or a shape that is too large.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot reduce axes {axes:?} of shape {shape:?}")]
pub struct ReduceError {
    /// The shape.
    pub shape: Vec<usize>,
    /// The axes.
    pub axes: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Axis {
    size: usize,
    stride: usize,
}

/// A reduction of a tensor over some of its axes.
#[derive(Debug, Clone)]
pub struct Reduce {
    reduction: Reduction,
    /// Axes of the result, outermost first; without the innermost axis of the tensor.
    kept: Vec<Axis>,
    /// Axes that are reduced, outermost first; without the innermost axis of the tensor.
    reduced: Vec<Axis>,
    /// The innermost axis of the tensor, as long as it goes.
    inner: usize,
    /// Whether the innermost axis is kept.
    is_inner_kept: bool,
    input_elements: usize,
    output_elements: usize,
    factor: f32,
}

impl Reduce {
    /// Prepares the reduction of a dense tensor.
    pub fn new(reduction: Reduction, shape: &[usize], axes: &[usize]) -> Result<Self, ReduceError> {
        let error = || ReduceError { shape: shape.to_vec(), axes: axes.to_vec() };
        let elements = shape
            .iter()
            .try_fold(1usize, |product, &size| product.checked_mul(size))
            .ok_or_else(error)?;
        if axes.iter().any(|&axis| axis >= shape.len()) {
            return Err(error());
        }
        // Neighbouring axes of the same kind are one axis.
        let mut merged: Vec<(usize, bool)> = Vec::new();
        for (axis, &size) in shape.iter().enumerate() {
            let is_kept = !axes.contains(&axis);
            match merged.last_mut() {
                _ if size == 1 => {}
                Some((last, kind)) if *kind == is_kept => *last *= size,
                _ => merged.push((size, is_kept)),
            }
        }
        let (inner, is_inner_kept) = merged.pop().unwrap_or((1, true));
        let (mut kept, mut reduced) = (Vec::new(), Vec::new());
        let mut stride = inner;
        for &(size, is_kept) in merged.iter().rev() {
            if is_kept { &mut kept } else { &mut reduced }.push(Axis { size, stride });
            stride = stride.saturating_mul(size);
        }
        kept.reverse();
        reduced.reverse();
        let product = |axes: &[Axis]| axes.iter().map(|axis| axis.size).product::<usize>();
        let output_elements = product(&kept) * if is_inner_kept { inner } else { 1 };
        let count = product(&reduced) * if is_inner_kept { 1 } else { inner };
        Ok(Self {
            reduction,
            kept,
            reduced,
            inner,
            is_inner_kept,
            input_elements: elements,
            output_elements,
            factor: if reduction == Reduction::Mean { 1.0 / count as f32 } else { 1.0 },
        })
    }

    /// How many results there are.
    pub fn output_elements(&self) -> usize {
        self.output_elements
    }

    /// Reduces `input`.
    ///
    /// # Safety
    ///
    /// All workers of the run make the same call, and nothing else accesses the output until all have returned.
    ///
    /// # Panics
    ///
    /// If a slice has another length than the shape asks for.
    pub unsafe fn run(&self, worker: &Worker, input: &[f32], output: SharedOutput<f32>) {
        assert_eq!(input.len(), self.input_elements, "input of a reduction");
        assert_eq!(output.len(), self.output_elements, "output of a reduction");
        // Parts are whole groups of vectors, so that the instruction set alone decides how a result is summed.
        let group = if self.is_inner_kept { VECTORS * worker.isa().lanes() } else { 1 };
        let groups_per_row = if self.is_inner_kept { self.inner.div_ceil(group) } else { 1 };
        let rows: usize = self.kept.iter().map(|axis| axis.size).product();
        let reduced: usize =
            self.input_elements.checked_div(self.output_elements).unwrap_or(0).max(1);
        let least = (LEAST_ELEMENTS / reduced / group).max(1);
        if self.output_elements == 0 {
            worker.parallel(0, |_| {});
            return;
        }
        for_each_part(worker, rows * groups_per_row, least, |range| {
            worker.isa().run(Groups { reduce: self, input, output, range, groups_per_row });
        });
    }

    #[inline(always)]
    fn combine<S: Simd>(&self, simd: S, a: S::F32, b: S::F32) -> S::F32 {
        match self.reduction {
            Reduction::Sum | Reduction::Mean => simd.add(a, b),
            Reduction::Max => simd.max(a, b),
            Reduction::Min => simd.min(a, b),
        }
    }

    /// What combines with any element to that element.
    fn neutral(&self) -> f32 {
        match self.reduction {
            Reduction::Sum | Reduction::Mean => 0.0,
            Reduction::Max => f32::NEG_INFINITY,
            Reduction::Min => f32::INFINITY,
        }
    }

    /// Where the elements of a result start.
    #[inline(always)]
    fn row_offset(&self, mut row: usize) -> usize {
        let mut offset = 0;
        for axis in self.kept.iter().rev() {
            offset += row % axis.size * axis.stride;
            row /= axis.size;
        }
        offset
    }
}

/// Some groups of results.
struct Groups<'a> {
    reduce: &'a Reduce,
    input: &'a [f32],
    output: SharedOutput<'a, f32>,
    range: Range<usize>,
    groups_per_row: usize,
}

impl SimdTask for Groups<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let reduce = self.reduce;
        let combinations: usize = reduce.reduced.iter().map(|axis| axis.size).product();
        for index in self.range.clone() {
            if reduce.is_inner_kept {
                let row = index / self.groups_per_row;
                let first = index % self.groups_per_row * VECTORS * S::LANES;
                let count = (reduce.inner - first).min(VECTORS * S::LANES);
                // SAFETY: groups do not overlap, and the caller keeps everyone else away.
                let target = unsafe { self.output.slice_mut(row * reduce.inner + first, count) };
                self.columns(simd, reduce.row_offset(row) + first, combinations, target);
            } else {
                // SAFETY: as above.
                let target = unsafe { self.output.slice_mut(index, 1) };
                target[0] = self.runs(simd, reduce.row_offset(index), combinations);
            }
        }
    }
}

impl Groups<'_> {
    /// Where combination `index` of the reduced axes lies.
    #[inline(always)]
    fn reduced_offset(&self, mut index: usize) -> usize {
        if let [axis] = self.reduce.reduced[..] {
            return index * axis.stride;
        }
        let mut offset = 0;
        for axis in self.reduce.reduced.iter().rev() {
            offset += index % axis.size * axis.stride;
            index /= axis.size;
        }
        offset
    }

    /// Reduces neighbouring results, each lane its own.
    #[inline(always)]
    fn columns<S: Simd>(&self, simd: S, start: usize, combinations: usize, target: &mut [f32]) {
        let mut sums = [simd.splat(self.reduce.neutral()); VECTORS];
        let factor = simd.splat(self.reduce.factor);
        let count = target.len();
        if count == VECTORS * S::LANES {
            for index in 0..combinations {
                let values = &self.input[start + self.reduced_offset(index)..][..count];
                for (sum, chunk) in sums.iter_mut().zip(values.chunks_exact(S::LANES)) {
                    *sum = self.reduce.combine(simd, *sum, simd.load_slice(chunk));
                }
            }
        } else {
            for index in 0..combinations {
                let values = &self.input[start + self.reduced_offset(index)..][..count];
                for (sum, chunk) in sums.iter_mut().zip(values.chunks(S::LANES)) {
                    *sum = self.reduce.combine(simd, *sum, simd.load_slice(chunk));
                }
            }
        }
        for (chunk, sum) in target.chunks_mut(S::LANES).zip(sums) {
            simd.store_slice(chunk, simd.mul(sum, factor));
        }
    }

    /// Reduces runs of neighbouring elements to one result.
    #[inline(always)]
    fn runs<S: Simd>(&self, simd: S, start: usize, combinations: usize) -> f32 {
        let reduce = self.reduce;
        let neutral = simd.splat(reduce.neutral());
        let mut sums = [neutral; VECTORS];
        let mut last = [reduce.neutral(); 16];
        for index in 0..combinations {
            let values = &self.input[start + self.reduced_offset(index)..][..reduce.inner];
            let blocks = values.chunks_exact(VECTORS * S::LANES);
            let rest = blocks.remainder();
            for block in blocks {
                for (sum, chunk) in sums.iter_mut().zip(block.chunks_exact(S::LANES)) {
                    *sum = reduce.combine(simd, *sum, simd.load_slice(chunk));
                }
            }
            for (sum, chunk) in sums.iter_mut().zip(rest.chunks(S::LANES)) {
                // Lanes past the end must hold what changes nothing.
                last[..chunk.len()].copy_from_slice(chunk);
                last[chunk.len()..].fill(reduce.neutral());
                *sum = reduce.combine(simd, *sum, simd.load_slice(&last[..S::LANES]));
            }
        }
        let left = reduce.combine(simd, sums[0], sums[1]);
        let right = reduce.combine(simd, sums[2], sums[3]);
        let all = reduce.combine(simd, left, right);
        match reduce.reduction {
            Reduction::Sum | Reduction::Mean => simd.sum(all) * reduce.factor,
            Reduction::Max => simd.max_lane(all),
            Reduction::Min => -simd.max_lane(simd.neg(all)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernels::testing::{assert_close, run_on, supported_isas, values};

    const ALL: [Reduction; 4] = [Reduction::Sum, Reduction::Mean, Reduction::Max, Reduction::Min];

    fn check(shape: &[usize], axes: &[usize]) {
        let input = values(shape.iter().product(), 3);
        for reduction in ALL {
            let reduce = Reduce::new(reduction, shape, axes).unwrap();
            let mut groups = vec![Vec::new(); reduce.output_elements()];
            for (index, &value) in input.iter().enumerate() {
                let (mut rest, mut place, mut stride) = (index, 0, 1);
                for (axis, &size) in shape.iter().enumerate().rev() {
                    if !axes.contains(&axis) {
                        place += rest % size * stride;
                        stride *= size;
                    }
                    rest /= size;
                }
                groups[place].push(f64::from(value));
            }
            let expected: Vec<f64> = groups
                .iter()
                .map(|group| match reduction {
                    Reduction::Sum => group.iter().sum(),
                    Reduction::Mean => group.iter().sum::<f64>() / group.len() as f64,
                    Reduction::Max => group.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b)),
                    Reduction::Min => group.iter().fold(f64::INFINITY, |a, &b| a.min(b)),
                })
                .collect();
            for isa in supported_isas() {
                let output = run_on(isa, expected.len(), |worker, output| {
                    // SAFETY: every worker of the pool runs this.
                    unsafe { reduce.run(worker, &input, output) };
                });
                let context = format!("{reduction:?} {shape:?} {axes:?} {isa:?}");
                assert_close(&output, &expected, 1e-5, &context);
            }
        }
    }

    #[test]
    fn reductions_of_networks() {
        let cases: [(&[usize], &[usize]); 8] = [
            (&[2, 7, 7, 150], &[1, 2]),
            (&[3, 70, 33], &[2]),
            (&[5, 4000], &[0]),
            (&[3, 4, 5], &[0, 1, 2]),
            (&[3, 4, 5], &[]),
            (&[2, 3, 4, 5], &[0, 2]),
            (&[2, 3, 4, 5], &[1, 3]),
            (&[], &[]),
        ];
        for (shape, axes) in cases {
            check(shape, axes);
        }
        assert!(Reduce::new(Reduction::Sum, &[2, 3], &[2]).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn any_axes(axes in prop::collection::vec((1usize..9, any::<bool>()), 1..6)) {
            let shape: Vec<usize> = axes.iter().map(|&(size, _)| size).collect();
            let reduced: Vec<usize> = (0..axes.len()).filter(|&axis| axes[axis].1).collect();
            check(&shape, &reduced);
        }
    }
}
