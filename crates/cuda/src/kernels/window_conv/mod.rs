//! Convolutions whose windows move by one pixel, with what they cover in shared memory once for all taps: `window_conv.cu`.

mod cost;
mod tile;

use bytemuck::{Pod, Zeroable};
use weft_ir::Activation;

use super::activation::ActivationParameters;
use super::divider::Divider;
use super::gemm::{Image, epilogue_activation, math_define};
use crate::launch::{Argument, Candidate, Copied, KernelSource, Launch, TensorMap};
use crate::{Chip, Precision};
use tile::{CHANNELS, ROW_BYTES, Tile};

const TEXT: &str = concat!(
    include_str!("../../../kernels/divider.cuh"),
    include_str!("../../../kernels/tensor_core.cuh"),
    include_str!("../../../kernels/packed.cuh"),
    include_str!("../../../kernels/window_conv.cu")
);

/// The most candidates that are offered where not all are wanted.
const MAX_RANKED: usize = 4;

/// The longest side of an image, so that all that kernels count fits 32 bits.
const MAX_SIDE: usize = 1 << 14;

/// Filters over all channels of some images.
#[derive(Clone, Debug)]
pub(crate) struct WindowConv {
    pub(crate) images: usize,
    pub(crate) image: Image,
    pub(crate) filters: usize,
    /// From filter to filter of the weights, in elements.
    pub(crate) filter_stride: usize,
    pub(crate) has_bias: bool,
    pub(crate) has_residual: bool,
    pub(crate) activation: Option<Activation>,
    /// Of every two by two pixels the greatest is stored.
    pub(crate) is_pooled: bool,
    pub(crate) precision: Precision,
}

/// What the kernel is given: weights by filter, tap and channel.
#[derive(Clone, Debug)]
pub(crate) struct WindowOperands {
    pub(crate) image: Argument,
    pub(crate) weights: Argument,
    pub(crate) bias: Argument,
    pub(crate) residual: Argument,
    pub(crate) output: Argument,
}

/// A candidate and the cycles that it is expected to take.
pub(crate) struct Expected {
    pub(crate) cycles: f64,
    pub(crate) candidate: Candidate,
}

/// The structure `Problem` of `window_conv.cu`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Parameters {
    by_filter_blocks: Divider,
    by_tile_columns: Divider,
    by_tile_rows: Divider,
    sizes: [i32; 3],
    pads: [i32; 2],
    channel_blocks: i32,
    activation: ActivationParameters,
}

impl WindowConv {
    /// True where the kernel can compute it on a chip.
    pub(crate) fn is_supported(&self, chip: Chip) -> bool {
        let Image { size, channels, output, kernel, strides, dilations, pads_begin } = self.image;
        let elements = |size: [usize; 2], of_each: usize| {
            [size[0], size[1], of_each].into_iter().try_fold(self.images, usize::checked_mul)
        };
        let fits = |elements: Option<usize>| {
            elements.is_some_and(|count| (1..=i32::MAX as usize).contains(&count))
        };
        chip.is_hopper()
            && matches!(self.precision, Precision::F16 | Precision::Bf16)
            && kernel[0] * kernel[1] > 1
            && strides == [1, 1]
            && dilations == [1, 1]
            && channels.is_multiple_of(CHANNELS)
            && self.filters.is_multiple_of(tile::FILTERS)
            && !(self.is_pooled && self.has_residual)
            && size.iter().chain(&output).all(|&side| side < MAX_SIDE)
            && pads_begin.iter().all(|&pad| pad < MAX_SIDE)
            && fits(elements(size, channels))
            && fits(elements(output, self.filters))
    }

    /// The candidates that are expected to be fastest on so many SMs for so many entries of a launch together, the best
    /// first; all that make sense where `all` are wanted. None where it is not supported.
    pub(crate) fn candidates(
        &self,
        operands: &WindowOperands,
        chip: Chip,
        entries: usize,
        all: bool,
    ) -> Vec<Expected> {
        if !self.is_supported(chip) {
            return Vec::new();
        }
        let mut ranked: Vec<(f64, Tile)> = Tile::sensible(self)
            .filter(|tile| tile.shared_bytes(self) <= chip.shared_bytes_per_block as usize)
            .map(|tile| (cost::estimate(self, &tile, chip, entries), tile))
            .collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        if !all {
            ranked.truncate(MAX_RANKED);
        }
        let expected = |(cycles, tile): (f64, Tile)| {
            let mut candidate = self.candidate(&tile, operands);
            if entries > 1 {
                candidate.launches[0].spread(entries, chip);
            }
            Expected { cycles, candidate }
        };
        ranked.into_iter().map(expected).collect()
    }

    /// Blocks of channels that are brought one after another.
    fn channel_blocks(&self) -> usize {
        self.image.channels / CHANNELS
    }

    fn taps(&self) -> usize {
        self.image.kernel[0] * self.image.kernel[1]
    }

    fn candidate(&self, tile: &Tile, operands: &WindowOperands) -> Candidate {
        let small = |size: usize| i32::try_from(size).expect("sizes were checked");
        let Image { output, pads_begin, .. } = self.image;
        let [tile_rows, tile_columns] = tile.tiles(self);
        let parameters = Parameters {
            by_filter_blocks: Divider::new(tile.filter_blocks(self)),
            by_tile_columns: Divider::new(tile_columns),
            by_tile_rows: Divider::new(tile_rows),
            sizes: [output[0], output[1], self.filters].map(small),
            pads: pads_begin.map(small),
            channel_blocks: small(self.channel_blocks()),
            activation: epilogue_activation(self.activation).1,
        };
        let arguments = vec![
            Argument::structure(&parameters),
            operands.bias.clone(),
            operands.residual.clone(),
            operands.output.clone(),
            Argument::TensorMap(self.weights_map(&operands.weights, tile)),
            Argument::TensorMap(self.image_map(&operands.image, tile)),
        ];
        let launch = Launch {
            source: self.source(tile),
            grid: [small(tile.blocks(self)) as u32, 1, 1],
            threads: tile.threads() as u32,
            shared_bytes: tile.shared_bytes(self) as u32,
            cluster: [1, 1, 1],
            arguments,
        };
        let pooled = if self.is_pooled { " pooled" } else { "" };
        Candidate::new(format!("window_conv {}{pooled}", tile.name()), vec![launch], 0)
    }

    fn weights_map(&self, base: &Argument, tile: &Tile) -> TensorMap {
        let storage = self.precision.storage();
        TensorMap {
            base: Box::new(base.clone()),
            storage,
            sizes: vec![(self.taps() * self.image.channels) as u64, self.filters as u64],
            strides_bytes: vec![(self.filter_stride * storage.size_bytes()) as u64],
            copied: Copied::Box(vec![CHANNELS as u32, tile.filters() as u32]),
            swizzle_bytes: ROW_BYTES as u32,
        }
    }

    fn image_map(&self, base: &Argument, tile: &Tile) -> TensorMap {
        let storage = self.precision.storage();
        let Image { size: [height, width], channels, .. } = self.image;
        let pixel_bytes = channels * storage.size_bytes();
        let strides = [pixel_bytes, width * pixel_bytes, height * width * pixel_bytes];
        let [rows, columns] = tile.region(self);
        TensorMap {
            base: Box::new(base.clone()),
            storage,
            sizes: [channels, width, height, self.images].map(|size| size as u64).to_vec(),
            strides_bytes: strides.map(|stride| stride as u64).to_vec(),
            copied: Copied::Box(vec![CHANNELS as u32, columns as u32, rows as u32, 1]),
            swizzle_bytes: ROW_BYTES as u32,
        }
    }

    fn source(&self, tile: &Tile) -> KernelSource {
        let flag = |is_set: bool| u8::from(is_set).to_string();
        let [kernel_y, kernel_x] = self.image.kernel;
        let run = tile.run(self);
        let defines = vec![
            ("STORAGE", self.precision.storage().cuda_name().to_string()),
            ("MATH", math_define(self.precision).to_string()),
            ("BY_WARPGROUP", flag(true)),
            ("KERNEL_Y", kernel_y.to_string()),
            ("KERNEL_X", kernel_x.to_string()),
            ("ROWS", tile.rows.to_string()),
            ("COLUMNS", tile.columns.to_string()),
            ("RUN", run.to_string()),
            ("FILTER_GROUPS", tile.filter_groups.to_string()),
            ("PIXEL_GROUPS", tile.pixel_groups.to_string()),
            ("STAGES", tile.stages.to_string()),
            ("REGIONS", tile::regions(self).to_string()),
            ("ACTIVATION", epilogue_activation(self.activation).0.to_string()),
            ("HAS_BIAS", flag(self.has_bias)),
            ("HAS_RESIDUAL", flag(self.has_residual)),
            ("IS_POOLED", flag(self.is_pooled)),
        ];
        KernelSource {
            is_exact: true,
            generated: operand_names(run),
            ..KernelSource::new("window_conv.cu", TEXT, "window_conv", defines)
        }
    }
}

/// What the instruction that multiplies a run says of its operands: a thread has half as many sums as the run has pixels.
fn operand_names(run: usize) -> String {
    let sums = run / 2;
    let names: Vec<String> = (0..sums).map(|sum| format!("%{sum}")).collect();
    let operands: Vec<String> = (0..sums).map(|sum| format!("\"+f\"(d[{sum}])")).collect();
    format!(
        "#define RUN_NAME \"{run}\"\n\
         #define SUM_NAMES \"{}\"\n\
         #define SUM_OPERANDS {}\n\
         #define LEFT_NAME \"%{sums}\"\n\
         #define RIGHT_NAME \"%{}\"\n\
         #define IS_ADDED_NAME \"%{}\"\n",
        names.join(", "),
        operands.join(", "),
        sums + 1,
        sums + 2,
    )
}

/// A convolution of 3 x 3 with a margin of one pixel.
fn example(images: usize, side: usize, channels: usize, filters: usize) -> WindowConv {
    let image = Image {
        size: [side; 2],
        channels,
        output: [side; 2],
        kernel: [3; 2],
        strides: [1; 2],
        dilations: [1; 2],
        pads_begin: [1; 2],
    };
    WindowConv {
        images,
        image,
        filters,
        filter_stride: 9 * channels,
        has_bias: true,
        has_residual: false,
        activation: Some(Activation::Relu),
        is_pooled: false,
        precision: Precision::F16,
    }
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let first = |conv: WindowConv| {
        let tile = Tile::sensible(&conv).next().expect("there is a tile for it");
        conv.source(&tile)
    };
    let residual = WindowConv { has_residual: true, ..example(1, 14, 256, 256) };
    let bf16 = WindowConv { precision: Precision::Bf16, has_bias: false, ..example(8, 13, 64, 64) };
    let pooled = WindowConv { is_pooled: true, ..example(8, 28, 512, 512) };
    vec![
        first(pooled),
        first(example(32, 56, 64, 64)),
        first(example(8, 112, 128, 128)),
        first(residual),
        first(bf16),
    ]
}

#[cfg(test)]
mod tests;
