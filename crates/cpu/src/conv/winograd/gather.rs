//! Owns the way in: pixels of a block of tiles, transformed to one matrix per product.

use std::marker::PhantomData;

use super::transform::Transform;
use super::{Planes, TilePlace, Tiles};
use crate::SimdTask;
use crate::simd::Simd;

/// Transforms the pixels of some tiles.
pub(super) struct Gather<'a, T, const INPUT: usize, const OUTPUT: usize> {
    tiles: Tiles<'a>,
    input: &'a [f32],
    target: &'a mut [f32],
    planes: Planes,
    transform: PhantomData<T>,
}

impl<'a, T: Transform<INPUT, OUTPUT>, const INPUT: usize, const OUTPUT: usize>
    Gather<'a, T, INPUT, OUTPUT>
{
    pub(super) fn new(
        tiles: Tiles<'a>,
        input: &'a [f32],
        target: &'a mut [f32],
        planes: Planes,
    ) -> Self {
        assert!(target.len() >= INPUT * INPUT * planes.plane_stride);
        Self { tiles, input, target, planes, transform: PhantomData }
    }

    /// Transforms the pixels of one tile.
    #[inline(always)]
    fn tile<S: Simd, const IS_INSIDE: bool>(&mut self, simd: S, index: usize, place: TilePlace) {
        let problem = &self.tiles.conv.geometry.problem;
        let channels = problem.channels_in;
        // Positions left of and above the image wrap around and are then seen to lie outside.
        let top = place.row.wrapping_sub(problem.pads_begin[0]);
        let left = place.column.wrapping_sub(problem.pads_begin[1]);
        let image = self.input[place.image * problem.height * problem.width * channels..].as_ptr();
        let target = self.target[index * self.planes.row_stride..].as_mut_ptr();
        for channel in (0..channels).step_by(S::LANES) {
            let count = (channels - channel).min(S::LANES);
            let mut columns = [[simd.zero(); INPUT]; INPUT];
            for (column, transformed) in columns.iter_mut().enumerate() {
                let mut pixels = [simd.zero(); INPUT];
                for (row, pixel) in pixels.iter_mut().enumerate() {
                    let (y, x) = (top.wrapping_add(row), left.wrapping_add(column));
                    if !IS_INSIDE && (y >= problem.height || x >= problem.width) {
                        continue;
                    }
                    let source = image.wrapping_add((y * problem.width + x) * channels + channel);
                    // SAFETY: the pixel lies on the image, by the check or because the whole tile does.
                    *pixel = unsafe {
                        if count == S::LANES {
                            simd.load(source)
                        } else {
                            simd.load_partial(source, count)
                        }
                    };
                }
                *transformed = T::input(simd, pixels);
            }
            for row in 0..INPUT {
                let mut across = [simd.zero(); INPUT];
                for (value, column) in across.iter_mut().zip(&columns) {
                    *value = column[row];
                }
                for (column, value) in T::input(simd, across).into_iter().enumerate() {
                    let plane = (row * INPUT + column) * self.planes.plane_stride;
                    // SAFETY: rows are padded to whole vectors, and `new` has checked that all planes fit.
                    unsafe { simd.store(target.add(plane + channel), value) };
                }
            }
        }
    }
}

impl<T: Transform<INPUT, OUTPUT>, const INPUT: usize, const OUTPUT: usize> SimdTask
    for Gather<'_, T, INPUT, OUTPUT>
{
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let problem = self.tiles.conv.geometry.problem;
        for index in 0..self.tiles.count {
            let place = self.tiles.place(index);
            let is_inside = [
                (place.row, problem.pads_begin[0], problem.height),
                (place.column, problem.pads_begin[1], problem.width),
            ]
            .iter()
            .all(|&(start, pad, size)| start >= pad && start - pad + INPUT <= size);
            if is_inside {
                self.tile::<S, true>(simd, index, place);
            } else {
                self.tile::<S, false>(simd, index, place);
            }
        }
        if self.tiles.count == 1 {
            // The second row of each product is not used, but must not slow it down with odd values.
            for plane in self.target.chunks_mut(self.planes.plane_stride) {
                plane[self.planes.row_stride..].fill(0.0);
            }
        }
    }
}
