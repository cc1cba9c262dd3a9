//! Owns the way out: products of a block of tiles, transformed to output pixels.

use std::marker::PhantomData;
use std::ops::Range;

use super::transform::Transform;
use super::{Planes, TilePlace, Tiles};
use crate::kernels::activate;
use crate::simd::Simd;
use crate::{SharedOutput, SimdTask};

/// Transforms the products of some tiles and some output channels, and completes the result.
pub(super) struct Scatter<'a, T, const INPUT: usize, const OUTPUT: usize> {
    tiles: Tiles<'a>,
    channels: Range<usize>,
    source: &'a [f32],
    planes: Planes,
    residual: Option<&'a [f32]>,
    output: SharedOutput<'a, f32>,
    transform: PhantomData<T>,
}

impl<'a, T: Transform<INPUT, OUTPUT>, const INPUT: usize, const OUTPUT: usize>
    Scatter<'a, T, INPUT, OUTPUT>
{
    pub(super) fn new(
        tiles: Tiles<'a>,
        channels: Range<usize>,
        source: &'a [f32],
        planes: Planes,
        residual: Option<&'a [f32]>,
        output: SharedOutput<'a, f32>,
    ) -> Self {
        assert!(source.len() >= INPUT * INPUT * planes.plane_stride);
        Self { tiles, channels, source, planes, residual, output, transform: PhantomData }
    }

    /// Computes the output pixels of one tile.
    #[inline(always)]
    fn tile<S: Simd>(&self, simd: S, index: usize, place: TilePlace) {
        let conv = self.tiles.conv;
        let (height, width) = (conv.geometry.output_height, conv.geometry.output_width);
        let channels_out = conv.geometry.problem.channels_out;
        let (rows, columns) = (OUTPUT.min(height - place.row), OUTPUT.min(width - place.column));
        let offset = |row: usize, column: usize| {
            let row = place.image * height + place.row + row;
            (row * width + place.column + column) * channels_out + self.channels.start
        };
        let (low, high) = conv.activation.as_range().unwrap_or((f32::NEG_INFINITY, f32::INFINITY));
        let (low, high) = (simd.splat(low), simd.splat(high));
        let source = self.source[index * self.planes.row_stride..].as_ptr();
        let output = self.output.as_mut_ptr();
        for channel in (0..self.channels.len()).step_by(S::LANES) {
            let count = (self.channels.len() - channel).min(S::LANES);
            // SAFETY: the planes are padded to whole vectors, and `new` has checked that they fit; the bias is padded too.
            let bias = unsafe { simd.load(conv.bias.as_ptr().add(self.channels.start + channel)) };
            let mut halves = [[simd.zero(); OUTPUT]; INPUT];
            for (column, half) in halves.iter_mut().enumerate() {
                let mut products = [simd.zero(); INPUT];
                for (row, product) in products.iter_mut().enumerate() {
                    let plane = (row * INPUT + column) * self.planes.plane_stride;
                    // SAFETY: as above.
                    *product = unsafe { simd.load(source.add(plane + channel)) };
                }
                *half = T::output(simd, products);
            }
            for row in 0..rows {
                let mut across = [simd.zero(); INPUT];
                for (value, half) in across.iter_mut().zip(&halves) {
                    *value = half[row];
                }
                let values = T::output(simd, across);
                for (column, &value) in values.iter().enumerate().take(columns) {
                    let start = offset(row, column) + channel;
                    let mut value = simd.add(value, bias);
                    // SAFETY: the pixel lies in the output, whose length the caller of the kernel has checked, and this
                    // task alone computes these channels of it.
                    unsafe {
                        if let Some(residual) = self.residual {
                            let source = residual.as_ptr().add(start);
                            value = simd.add(value, simd.load_partial(source, count));
                        }
                        value = simd.min(high, simd.max(low, value));
                        if count == S::LANES {
                            simd.store(output.add(start), value);
                        } else {
                            simd.store_partial(output.add(start), value, count);
                        }
                    }
                }
            }
        }
        if conv.activation.as_range().is_none() {
            for row in 0..rows {
                for column in 0..columns {
                    // SAFETY: these are the channels just stored.
                    let values =
                        unsafe { self.output.slice_mut(offset(row, column), self.channels.len()) };
                    activate(simd, conv.activation, values);
                }
            }
        }
    }
}

impl<T: Transform<INPUT, OUTPUT>, const INPUT: usize, const OUTPUT: usize> SimdTask
    for Scatter<'_, T, INPUT, OUTPUT>
{
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for index in 0..self.tiles.count {
            self.tile(simd, index, self.tiles.place(index));
        }
    }
}
