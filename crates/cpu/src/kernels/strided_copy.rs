//! Owns copies between strided views: transposition, slices, parts of concatenations and of splits, expansion.

use std::ops::Range;

use super::parts::for_each_part;
use crate::simd::Simd;
use crate::{SharedOutput, SimdTask, Worker};

/// Fewest elements worth a task.
const LEAST_ELEMENTS: usize = 4096;

/// A view that leaves its tensor, or whose size overflows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a view of size {sizes:?} does not fit tensors of {source_elements} and {target_elements} elements"
)]
pub struct ViewError {
    /// The sizes of the view.
    pub sizes: Vec<usize>,
    /// Elements of the tensor that is read.
    pub source_elements: usize,
    /// Elements of the tensor that is written.
    pub target_elements: usize,
}

/// An axis of the copied view, with the distances between neighbours on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyAxis {
    /// How many elements lie along it.
    pub size: usize,
    /// From one to the next in the source; negative to go backwards, zero to repeat.
    pub source_stride: isize,
    /// From one to the next in the target.
    pub target_stride: usize,
}

/// A copy of a view of one tensor to a view of another.
#[derive(Debug, Clone)]
pub struct StridedCopy {
    source_elements: usize,
    target_elements: usize,
    source_offset: usize,
    target_offset: usize,
    /// Merged axes in the order of the target, without the last two groups below.
    outer: Vec<CopyAxis>,
    /// An axis along which the source is contiguous while the target is not; of size one where there is none.
    across: CopyAxis,
    /// The innermost axis of the target.
    inner: CopyAxis,
}

/// The distances between neighbours of a dense tensor.
fn dense_strides(shape: &[usize]) -> Option<Vec<usize>> {
    let mut strides = vec![1usize; shape.len()];
    for axis in (0..shape.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1].checked_mul(shape[axis + 1].max(1))?;
    }
    Some(strides)
}

impl StridedCopy {
    /// A copy along `axes`, outermost of the target first, from and to the given first elements.
    ///
    /// The caller makes sure that no two elements go to the same place.
    pub fn new(
        axes: &[CopyAxis],
        source_elements: usize,
        source_offset: usize,
        target_elements: usize,
        target_offset: usize,
    ) -> Result<Self, ViewError> {
        let error = || ViewError {
            sizes: axes.iter().map(|axis| axis.size).collect(),
            source_elements,
            target_elements,
        };
        let is_empty = axes.iter().any(|axis| axis.size == 0);
        if !is_empty {
            let (mut low, mut high) = (source_offset as i128, source_offset as i128);
            let mut target_high = target_offset as i128;
            for axis in axes {
                let steps = axis.size as i128 - 1;
                let reach = steps.checked_mul(axis.source_stride as i128).ok_or_else(error)?;
                low += reach.min(0);
                high += reach.max(0);
                target_high += steps.checked_mul(axis.target_stride as i128).ok_or_else(error)?;
            }
            if low < 0 || high >= source_elements as i128 || target_high >= target_elements as i128
            {
                return Err(error());
            }
        }
        let mut merged: Vec<CopyAxis> = Vec::with_capacity(axes.len());
        for axis in axes.iter().rev().copied().filter(|axis| axis.size != 1) {
            match merged.last_mut() {
                Some(inside)
                    if axis.source_stride == inside.size as isize * inside.source_stride
                        && axis.target_stride == inside.size * inside.target_stride =>
                {
                    inside.size *= axis.size;
                }
                _ => merged.push(axis),
            }
        }
        merged.reverse();
        let single = CopyAxis { size: 1, source_stride: 0, target_stride: 0 };
        let inner = merged.pop().unwrap_or(single);
        let is_contiguous = inner.source_stride == 1 && inner.target_stride == 1;
        let across = match merged.iter().rposition(|axis| axis.source_stride == 1) {
            Some(place) if !is_contiguous => merged.remove(place),
            _ => single,
        };
        Ok(Self {
            source_elements,
            target_elements,
            source_offset,
            target_offset,
            outer: if is_empty { vec![CopyAxis { size: 0, ..single }] } else { merged },
            across,
            inner,
        })
    }

    /// Axis `i` of the result is axis `permutation[i]` of the source.
    pub fn transpose(shape: &[usize], permutation: &[usize]) -> Result<Self, ViewError> {
        let elements = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
        let error = || ViewError { sizes: shape.to_vec(), source_elements: 0, target_elements: 0 };
        let (elements, strides) = elements.zip(dense_strides(shape)).ok_or_else(error)?;
        let is_permutation = permutation.len() == shape.len()
            && (0..shape.len()).all(|axis| permutation.contains(&axis));
        if !is_permutation {
            return Err(error());
        }
        let sizes: Vec<usize> = permutation.iter().map(|&axis| shape[axis]).collect();
        let targets = dense_strides(&sizes).ok_or_else(error)?;
        let axes: Vec<CopyAxis> = permutation
            .iter()
            .zip(targets)
            .map(|(&axis, target_stride)| CopyAxis {
                size: shape[axis],
                source_stride: strides[axis] as isize,
                target_stride,
            })
            .collect();
        Self::new(&axes, elements, 0, elements, 0)
    }

    /// From `starts` on, `sizes` elements at distances of `steps` along each axis of a tensor.
    pub fn slice(
        shape: &[usize],
        starts: &[usize],
        steps: &[isize],
        sizes: &[usize],
    ) -> Result<Self, ViewError> {
        let rank = shape.len();
        let error = || ViewError { sizes: sizes.to_vec(), source_elements: 0, target_elements: 0 };
        if [starts.len(), steps.len(), sizes.len()] != [rank; 3] {
            return Err(error());
        }
        let product = |shape: &[usize]| {
            shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size))
        };
        let (source, target) = product(shape).zip(product(sizes)).ok_or_else(error)?;
        let (strides, targets) =
            dense_strides(shape).zip(dense_strides(sizes)).ok_or_else(error)?;
        let mut offset = 0;
        let mut axes = Vec::with_capacity(rank);
        for axis in 0..rank {
            // Each axis by itself must stay inside, or the view would reach into neighbouring rows.
            let last =
                starts[axis] as i128 + (sizes[axis].max(1) as i128 - 1) * steps[axis] as i128;
            let is_inside = |place: i128| place >= 0 && place < shape[axis] as i128;
            if sizes[axis] > 0 && (!is_inside(starts[axis] as i128) || !is_inside(last)) {
                return Err(error());
            }
            offset += starts[axis] * strides[axis];
            let source_stride =
                (strides[axis] as isize).checked_mul(steps[axis]).ok_or_else(error)?;
            axes.push(CopyAxis { size: sizes[axis], source_stride, target_stride: targets[axis] });
        }
        Self::new(&axes, source, if target == 0 { 0 } else { offset }, target, 0)
    }

    /// Puts a tensor of the given shape into a larger one, `offset` after the start of `axis`, whose size there is
    /// `total`: one part of a concatenation.
    pub fn concat_part(
        shape: &[usize],
        axis: usize,
        offset: usize,
        total: usize,
    ) -> Result<Self, ViewError> {
        Self::along_axis(shape, axis, offset, total, true)
    }

    /// Takes a tensor of the given shape out of a larger one, `offset` after the start of `axis`, whose size there is
    /// `total`: one part of a split.
    pub fn split_part(
        shape: &[usize],
        axis: usize,
        offset: usize,
        total: usize,
    ) -> Result<Self, ViewError> {
        Self::along_axis(shape, axis, offset, total, false)
    }

    fn along_axis(
        shape: &[usize],
        axis: usize,
        offset: usize,
        total: usize,
        is_target: bool,
    ) -> Result<Self, ViewError> {
        let error = || ViewError { sizes: shape.to_vec(), source_elements: 0, target_elements: 0 };
        let product = |sizes: &[usize]| {
            sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size))
        };
        let fits = axis < shape.len() && offset <= total && shape[axis] <= total - offset;
        let parts =
            fits.then(|| Some((product(&shape[..axis])?, product(&shape[axis + 1..])?))).flatten();
        let (outer, inner) = parts.ok_or_else(error)?;
        let own = shape[axis].checked_mul(inner).ok_or_else(error)?;
        let whole = total.checked_mul(inner).ok_or_else(error)?;
        let (small, large) =
            outer.checked_mul(own).zip(outer.checked_mul(whole)).ok_or_else(error)?;
        let start = if small == 0 { 0 } else { offset * inner };
        let (source_row, target_row) = if is_target { (own, whole) } else { (whole, own) };
        let axes = [
            CopyAxis { size: outer, source_stride: source_row as isize, target_stride: target_row },
            CopyAxis { size: own, source_stride: 1, target_stride: 1 },
        ];
        if is_target {
            Self::new(&axes, small, 0, large, start)
        } else {
            Self::new(&axes, large, start, small, 0)
        }
    }

    /// How many elements the target has, those between the copied ones included.
    pub fn target_elements(&self) -> usize {
        self.target_elements
    }

    /// Copies the view.
    ///
    /// # Safety
    ///
    /// All workers of the run make the same call, and nothing else accesses the copied part of the target until all
    /// have returned.
    ///
    /// # Panics
    ///
    /// If a slice has another length than its tensor.
    pub unsafe fn run<T: Copy + Send + Sync>(
        &self,
        worker: &Worker,
        source: &[T],
        target: SharedOutput<T>,
    ) {
        assert_eq!(source.len(), self.source_elements, "source of a copy");
        assert_eq!(target.len(), self.target_elements, "target of a copy");
        // Rows are the outer axes and the axis across, in blocks that fill cache lines on both sides.
        let across_blocks = self.across.size.div_ceil(ACROSS);
        let rows: usize =
            self.outer.iter().map(|axis| axis.size).product::<usize>() * across_blocks;
        let row_elements = self.inner.size * self.across.size.min(ACROSS);
        if rows == 1 {
            for_each_part(worker, self.inner.size, LEAST_ELEMENTS, |part| {
                worker.isa().run(Rows { copy: self, source, target, rows: 0..1, part });
            });
            return;
        }
        for_each_part(worker, rows, LEAST_ELEMENTS.div_ceil(row_elements.max(1)), |rows| {
            let part = 0..self.inner.size;
            worker.isa().run(Rows { copy: self, source, target, rows, part });
        });
    }
}

/// How many elements of the axis across are copied together.
const ACROSS: usize = 32;

struct Rows<'a, T> {
    copy: &'a StridedCopy,
    source: &'a [T],
    target: SharedOutput<'a, T>,
    rows: Range<usize>,
    /// Which elements of the innermost axis.
    part: Range<usize>,
}

impl<T: Copy> SimdTask for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let StridedCopy { outer, across, inner, .. } = self.copy;
        let across_blocks = across.size.div_ceil(ACROSS);
        for row in self.rows {
            let first = row % across_blocks * ACROSS;
            let mut rest = row / across_blocks;
            let mut from = self.copy.source_offset as isize
                + first as isize * across.source_stride
                + self.part.start as isize * inner.source_stride;
            let mut to = self.copy.target_offset
                + first * across.target_stride
                + self.part.start * inner.target_stride;
            for axis in outer.iter().rev() {
                let place = rest % axis.size;
                rest /= axis.size;
                from += place as isize * axis.source_stride;
                to += place * axis.target_stride;
            }
            let block = Block {
                source: self.source.as_ptr().wrapping_offset(from),
                target: self.target.as_mut_ptr().wrapping_add(to),
                columns: CopyAxis { size: self.part.len(), ..*inner },
                rows: CopyAxis { size: ACROSS.min(across.size - first), ..*across },
            };
            // SAFETY: `StridedCopy::new` has checked that the view stays inside both tensors, whose lengths `run` has
            // checked, and the caller promises that this task alone writes this part of the target.
            unsafe { block.copy(simd) };
        }
    }
}

/// Some rows of the axis across, and some columns of the innermost axis.
struct Block<T> {
    source: *const T,
    target: *mut T,
    rows: CopyAxis,
    columns: CopyAxis,
}

impl<T: Copy> Block<T> {
    /// # Safety
    ///
    /// The block is readable at the source and writable at the target, and these do not overlap.
    #[inline(always)]
    unsafe fn copy<S: Simd>(&self, simd: S) {
        let Self { source, target, rows, columns } = self;
        // SAFETY: every address below is a row and column of the block.
        unsafe {
            if columns.source_stride == 1 && columns.target_stride == 1 && rows.size == 1 {
                std::ptr::copy_nonoverlapping(*source, *target, columns.size);
                return;
            }
            let mut done = 0;
            let is_transposition = size_of::<T>() == size_of::<f32>()
                && rows.source_stride == 1
                && columns.target_stride == 1
                && columns.source_stride > 0;
            if is_transposition {
                let whole_rows = rows.size / 8 * 8;
                while done + 8 <= columns.size && whole_rows > 0 {
                    for row in (0..whole_rows).step_by(8) {
                        let from = source.add(done * columns.source_stride as usize + row);
                        let to = target.add(row * rows.target_stride + done);
                        let stride = columns.source_stride as usize;
                        simd.transpose_8x8(from.cast(), stride, to.cast(), rows.target_stride);
                    }
                    self.copy_plainly(whole_rows..rows.size, done..done + 8);
                    done += 8;
                }
            }
            self.copy_plainly(0..rows.size, done..columns.size);
        }
    }

    /// # Safety
    ///
    /// As for [`Block::copy`]; the ranges lie in the block.
    #[inline(always)]
    unsafe fn copy_plainly(&self, rows: Range<usize>, columns: Range<usize>) {
        for row in rows {
            for column in columns.clone() {
                let from = row as isize * self.rows.source_stride
                    + column as isize * self.columns.source_stride;
                let to = row * self.rows.target_stride + column * self.columns.target_stride;
                // SAFETY: the caller's promise.
                unsafe { *self.target.add(to) = *self.source.offset(from) };
            }
        }
    }
}

#[cfg(test)]
mod tests;
