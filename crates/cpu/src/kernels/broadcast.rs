//! Owns the walk over several operands that broadcast to one shape: few axes, the innermost as long as possible.

use std::ops::Range;

/// Shapes that do not broadcast to one another, or are too large.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("shapes {shapes:?} do not broadcast to one shape")]
pub struct BroadcastError {
    /// The shapes.
    pub shapes: Vec<Vec<usize>>,
}

/// An axis of the result, with each operand's distance between neighbours along it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis<const OPERANDS: usize> {
    size: usize,
    strides: [usize; OPERANDS],
}

/// Operands that broadcast to one shape.
#[derive(Debug, Clone)]
pub(crate) struct Broadcast<const OPERANDS: usize> {
    shape: Vec<usize>,
    elements: usize,
    lengths: [usize; OPERANDS],
    /// All merged axes but the innermost.
    outer: Vec<Axis<OPERANDS>>,
    inner: Axis<OPERANDS>,
}

/// A run of results along the innermost axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<const OPERANDS: usize> {
    /// Where the results are.
    pub(crate) start: usize,
    pub(crate) count: usize,
    /// Where each operand starts.
    pub(crate) offsets: [usize; OPERANDS],
}

impl<const OPERANDS: usize> Broadcast<OPERANDS> {
    pub(crate) fn new(shapes: [&[usize]; OPERANDS]) -> Result<Self, BroadcastError> {
        let error =
            || BroadcastError { shapes: shapes.iter().map(|shape| shape.to_vec()).collect() };
        let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
        let size = |operand: usize, axis: usize| {
            let shape = shapes[operand];
            (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis])
        };
        let mut shape = vec![1; rank];
        let mut lengths = [1usize; OPERANDS];
        let mut elements = 1usize;
        let mut axes: Vec<Axis<OPERANDS>> = Vec::with_capacity(rank);
        // From the innermost axis outward, joining each to the one inside where all operands allow it.
        for axis in (0..rank).rev() {
            for operand in 0..OPERANDS {
                match (shape[axis], size(operand, axis)) {
                    (_, 1) => {}
                    (1, other) => shape[axis] = other,
                    (a, b) if a == b => {}
                    _ => return Err(error()),
                }
            }
            let mut strides = [0; OPERANDS];
            for operand in 0..OPERANDS {
                if size(operand, axis) != 1 {
                    strides[operand] = lengths[operand];
                    lengths[operand] =
                        lengths[operand].checked_mul(shape[axis]).ok_or_else(error)?;
                }
            }
            elements = elements.checked_mul(shape[axis]).ok_or_else(error)?;
            if shape[axis] == 1 {
                continue;
            }
            match axes.last_mut() {
                Some(inside)
                    if (0..OPERANDS).all(|operand| {
                        strides[operand] == inside.size * inside.strides[operand]
                    }) =>
                {
                    inside.size *= shape[axis];
                }
                _ => axes.push(Axis { size: shape[axis], strides }),
            }
        }
        axes.reverse();
        let inner = axes.pop().unwrap_or(Axis { size: 1, strides: [0; OPERANDS] });
        Ok(Self { shape, elements, lengths, outer: axes, inner })
    }

    /// The shape of the result.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How many elements the result has.
    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    /// How many elements each operand has.
    pub(crate) fn lengths(&self) -> [usize; OPERANDS] {
        self.lengths
    }

    /// Each operand's distance between neighbours along a run: one, or zero where it repeats.
    pub(crate) fn run_strides(&self) -> [usize; OPERANDS] {
        self.inner.strides
    }

    /// The runs that make up a range of results, in order.
    pub(crate) fn runs(&self, range: Range<usize>) -> Runs<'_, OPERANDS> {
        let mut counters = vec![0; self.outer.len()];
        let mut offsets = [0; OPERANDS];
        let mut row = range.start / self.inner.size.max(1);
        for (axis, counter) in self.outer.iter().zip(&mut counters).rev() {
            *counter = row % axis.size.max(1);
            row /= axis.size.max(1);
            for (offset, stride) in offsets.iter_mut().zip(axis.strides) {
                *offset += *counter * stride;
            }
        }
        Runs { walk: self, rest: range, counters, offsets }
    }
}

/// Runs one after another. An iterator and not a function that is given a closure: closures are not compiled for the
/// instruction set of the kernel around them.
pub(crate) struct Runs<'a, const OPERANDS: usize> {
    walk: &'a Broadcast<OPERANDS>,
    rest: Range<usize>,
    counters: Vec<usize>,
    offsets: [usize; OPERANDS],
}

impl<const OPERANDS: usize> Iterator for Runs<'_, OPERANDS> {
    type Item = Run<OPERANDS>;

    fn next(&mut self) -> Option<Run<OPERANDS>> {
        let start = self.rest.start;
        if self.rest.is_empty() {
            return None;
        }
        let inner = self.walk.inner;
        let within = start % inner.size;
        let count = (inner.size - within).min(self.rest.len());
        let mut run = Run { start, count, offsets: self.offsets };
        for (offset, stride) in run.offsets.iter_mut().zip(inner.strides) {
            *offset += within * stride;
        }
        self.rest.start += count;
        for (axis, counter) in self.walk.outer.iter().zip(&mut self.counters).rev() {
            *counter += 1;
            for (offset, stride) in self.offsets.iter_mut().zip(axis.strides) {
                *offset += stride;
            }
            if *counter < axis.size {
                break;
            }
            *counter = 0;
            for (offset, stride) in self.offsets.iter_mut().zip(axis.strides) {
                *offset -= axis.size * stride;
            }
        }
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_merge_as_far_as_all_operands_allow() {
        let cases: &[(&[usize], &[usize], usize, usize)] = &[
            (&[2, 3, 4], &[2, 3, 4], 0, 24),
            (&[2, 3, 4], &[], 0, 24),
            (&[2, 3, 4], &[4], 1, 4),
            (&[2, 5, 5, 8], &[2, 1, 1, 8], 2, 8),
            (&[2, 3, 4], &[2, 1, 1], 1, 12),
            (&[3, 1], &[1, 4], 1, 4),
            (&[1, 1], &[1], 0, 1),
        ];
        for &(a, b, outer, inner) in cases {
            let walk = Broadcast::new([a, b]).unwrap();
            assert_eq!((walk.outer.len(), walk.inner.size), (outer, inner), "{a:?} {b:?}");
        }
        assert!(Broadcast::new([&[2, 3], &[2]]).is_err());
        assert!(Broadcast::new([&[usize::MAX, 3], &[1]]).is_err());
    }
}
