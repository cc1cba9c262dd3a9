//! Owns Winograd convolution: 3x3 kernels of stride one by fewer multiplications, as one matrix product per position of
//! a tile.

mod gather;
mod parameters;
mod scatter;
mod transform;
mod weights;

use std::ops::Range;
use std::sync::Arc;

use super::problem::{ConvError, ConvProblem, Geometry};
use crate::Activation;
use crate::gemm::{Epilogue, Rows, TileLimits, gemm};
use crate::{AlignedBuffer, SharedOutput, Worker};
use gather::Gather;
pub use parameters::WinogradParameters;
use scatter::Scatter;
use transform::{Four, Transform, Two};
pub use weights::{WinogradTile, WinogradWeights};

/// Room after each row and each product's matrix, so that they do not compete for the same places of the cache.
const GAP: usize = 16;

/// A 3x3 convolution by tiles.
#[derive(Debug)]
pub struct WinogradConv {
    geometry: Geometry,
    weights: Arc<WinogradWeights>,
    parameters: WinogradParameters,
    /// One value per output channel, padded to whole blocks.
    bias: AlignedBuffer,
    activation: Activation,
    tile_rows: usize,
    tile_columns: usize,
}

/// Some tiles of all images.
#[derive(Debug, Clone, Copy)]
struct Tiles<'a> {
    conv: &'a WinogradConv,
    first: usize,
    count: usize,
}

/// Where the upper left pixel of a tile's output is.
#[derive(Debug, Clone, Copy)]
struct TilePlace {
    image: usize,
    row: usize,
    column: usize,
}

/// Matrices of one value per tile and channel, one for each product.
#[derive(Debug, Clone, Copy)]
struct Planes {
    row_stride: usize,
    plane_stride: usize,
}

impl Planes {
    fn new(tiles: usize, channels: usize) -> Self {
        let row_stride = channels.next_multiple_of(16) + GAP;
        Self { row_stride, plane_stride: tiles * row_stride + GAP }
    }
}

impl Tiles<'_> {
    fn place(&self, index: usize) -> TilePlace {
        let WinogradConv { tile_rows, tile_columns, ref weights, .. } = *self.conv;
        let tile = self.first + index;
        TilePlace {
            image: tile / (tile_rows * tile_columns),
            row: tile / tile_columns % tile_rows * weights.tile.output(),
            column: tile % tile_columns * weights.tile.output(),
        }
    }
}

impl WinogradConv {
    /// Whether the problem is a 3x3 convolution that moves by single pixels.
    pub fn supports(problem: &ConvProblem) -> bool {
        problem.kernel == [3, 3]
            && problem.strides == [1, 1]
            && problem.dilations == [1, 1]
            && problem.group == 1
    }

    /// Prepares the convolution with weights that may be shared with other sizes of image, and were packed with the same
    /// number of channels in a block.
    pub fn new(
        problem: &ConvProblem,
        weights: Arc<WinogradWeights>,
        parameters: WinogradParameters,
        bias: Option<&[f32]>,
        activation: Activation,
    ) -> Result<Self, ConvError> {
        let geometry = problem.geometry()?;
        let is_for_weights = weights.channels_in == problem.channels_in
            && weights.channels_out == problem.channels_out
            && weights.block_channels == parameters.block_channels(problem.channels_out);
        if !Self::supports(problem) || !is_for_weights {
            return Err(ConvError::Unsupported { algorithm: "Winograd convolution" });
        }
        let mut padded_bias = AlignedBuffer::zeroed(weights.blocks() * weights.block_channels)?;
        if let Some(bias) = bias {
            geometry.check_bias(bias)?;
            padded_bias[..bias.len()].copy_from_slice(bias);
        }
        let tile_rows = geometry.output_height.div_ceil(weights.tile.output());
        let tile_columns = geometry.output_width.div_ceil(weights.tile.output());
        Ok(Self {
            geometry,
            weights,
            parameters,
            bias: padded_bias,
            activation,
            tile_rows,
            tile_columns,
        })
    }

    /// How many bytes the transformed weights take.
    pub fn weight_bytes(&self) -> usize {
        self.weights.bytes()
    }

    /// Computes `activation(convolution + bias + residual)`.
    ///
    /// # Safety
    ///
    /// All workers of the run make the same call, and nothing else accesses the output until all have returned.
    pub unsafe fn run(
        &self,
        worker: &Worker,
        input: &[f32],
        residual: Option<&[f32]>,
        output: SharedOutput<f32>,
    ) {
        self.geometry.assert_activations(input.len(), output.len(), residual.map(<[f32]>::len));
        match self.weights.tile {
            WinogradTile::Two => self.run_with::<Two, 4, 2>(worker, input, residual, output),
            WinogradTile::Four => self.run_with::<Four, 6, 4>(worker, input, residual, output),
        }
    }

    fn run_with<T: Transform<INPUT, OUTPUT>, const INPUT: usize, const OUTPUT: usize>(
        &self,
        worker: &Worker,
        input: &[f32],
        residual: Option<&[f32]>,
        output: SharedOutput<f32>,
    ) {
        let weights = &*self.weights;
        let products = weights.tile.products();
        let tile_count = self.geometry.problem.batch * self.tile_rows * self.tile_columns;
        let block_tiles = self.parameters.block_tiles(&self.geometry, weights.tile, worker.count());
        let channel_blocks = weights.blocks();
        // A product of one row sums in another order, so there are always two.
        let pixels = Planes::new(block_tiles.max(2), weights.channels_in);
        let results = Planes::new(block_tiles.max(2), weights.block_channels);
        let mut transformed = worker.scratch(products * pixels.plane_stride);
        let mut summed = worker.scratch(products * results.plane_stride);
        let alone = Worker::solo(worker.isa());
        let limits = TileLimits::default();
        let mut last_tiles = None;
        // Blocks of the same tiles follow one another, so a worker rarely transforms the same pixels as another.
        worker.parallel(tile_count.div_ceil(block_tiles) * channel_blocks, |task| {
            let first = task / channel_blocks * block_tiles;
            let block = task % channel_blocks;
            let tiles = Tiles { conv: self, first, count: block_tiles.min(tile_count - first) };
            if last_tiles.replace(first) != Some(first) {
                worker.isa().run(Gather::<T, INPUT, OUTPUT>::new(
                    tiles,
                    input,
                    &mut transformed,
                    pixels,
                ));
            }
            for (product, matrix) in weights.block(block).iter().enumerate() {
                let rows = Rows::new(
                    &transformed[product * pixels.plane_stride..],
                    tiles.count.max(2),
                    weights.channels_in,
                    pixels.row_stride,
                );
                let target = SharedOutput::new(&mut summed[product * results.plane_stride..]);
                let epilogue = Epilogue::default();
                // SAFETY: the worker has no companions, and the buffer is its own.
                unsafe {
                    gemm(&alone, &rows, matrix, &limits, target, results.row_stride, &epilogue)
                };
            }
            let first_channel = block * weights.block_channels;
            let channels = Range {
                start: first_channel,
                end: (first_channel + weights.block_channels).min(weights.channels_out),
            };
            worker.isa().run(Scatter::<T, INPUT, OUTPUT>::new(
                tiles, channels, &summed, results, residual, output,
            ));
        });
    }
}

#[cfg(test)]
mod tests;
