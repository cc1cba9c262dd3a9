//! Convolutions of images of few channels on tensor cores, straight from the image: `stem_conv.cu`.

use bytemuck::{Pod, Zeroable};
use weft_ir::Activation;

use super::activation::ActivationParameters;
use super::divider::Divider;
use super::gemm::{Image, epilogue_activation, math_define};
use crate::launch::{Argument, Candidate, KernelSource, Launch};
use crate::{Chip, Precision};

const TEXT: &str = concat!(
    include_str!("../../kernels/divider.cuh"),
    include_str!("../../kernels/tensor_core.cuh"),
    include_str!("../../kernels/stem_conv.cu")
);

/// Warps of a block, columns of its tile and filters of a warp, as the template has them.
const WARPS: usize = 4;
const COLUMNS: usize = 16;
const FILTERS_OF_WARP: usize = 32;

/// Rows that a tile may have.
const ROWS: [usize; 4] = [2, 4, 8, 16];

/// The most channels that are few, and where windows are of one pixel.
const MAX_CHANNELS: usize = 4;
const MAX_POINT_CHANNELS: usize = 32;

/// The most steps of the sum: their weights are in registers.
const MAX_STEPS: usize = 13;

/// Shared memory that every block may have.
const MAX_REGION_BYTES: usize = 47 << 10;

/// Blocks that keep an SM busy.
const BLOCKS_OF_SM: usize = 2;

/// Filters over all channels of some images.
#[derive(Clone, Debug)]
pub(crate) struct StemConv {
    pub(crate) images: usize,
    pub(crate) image: Image,
    pub(crate) filters: usize,
    /// Channels that filters have; those of the image beyond are zero.
    pub(crate) filter_channels: usize,
    pub(crate) has_bias: bool,
    pub(crate) activation: Option<Activation>,
    pub(crate) precision: Precision,
}

/// The structure `Problem` of `stem_conv.cu`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Parameters {
    by_filter_blocks: Divider,
    by_tile_columns: Divider,
    by_tile_rows: Divider,
    sizes: [i32; 5],
    pad_y: i32,
    activation: ActivationParameters,
}

impl StemConv {
    /// True where the kernel can compute it.
    pub(crate) fn is_supported(&self) -> bool {
        let Image { size, channels, output, kernel, strides, dilations, pads_begin } = self.image;
        let most = if kernel == [1, 1] { MAX_POINT_CHANNELS } else { MAX_CHANNELS };
        let elements = |size: [usize; 2], of_each: usize| {
            [size[0], size[1], of_each].into_iter().try_fold(self.images, usize::checked_mul)
        };
        let fits = |elements: Option<usize>| {
            elements.is_some_and(|count| (1..=i32::MAX as usize).contains(&count))
        };
        matches!(self.precision, Precision::F16 | Precision::Bf16)
            && (1..=most).contains(&channels)
            && (strides[1] * channels).is_multiple_of(2)
            && dilations == [1, 1]
            && self.steps() <= MAX_STEPS
            && fits(elements(size, channels))
            && fits(elements(output, self.filters))
            && pads_begin.iter().all(|&pad| pad < 1 << 10)
            && self.region_bytes(WARPS) <= MAX_REGION_BYTES
    }

    /// The candidates, where it is supported. The arguments are those of `stem_conv.cu`, the parameters left out.
    pub(crate) fn candidates(&self, operands: &[Argument; 4], chip: Chip) -> Vec<Candidate> {
        let warps_m = WARPS / self.warps_n();
        let mut rows = ROWS.to_vec();
        rows.retain(|&rows| {
            rows.is_multiple_of(warps_m) && self.region_bytes(rows) <= MAX_REGION_BYTES
        });
        // Tall tiles load weights less often, once there are blocks enough for every SM.
        let fills = |rows: usize| self.blocks(rows) >= chip.sm_count as usize * BLOCKS_OF_SM;
        rows.sort_by_key(|&rows| if fills(rows) { (0, usize::MAX - rows) } else { (1, rows) });
        rows.into_iter().map(|rows| self.candidate(rows, operands)).collect()
    }

    /// The weights in the order in which threads take them, from filters as the operator has them: for each 32 filters,
    /// each step and half of them, each lane of a warp and two columns of `mma.sync`, a pair of values of two quads.
    pub(crate) fn weights<'a>(&'a self, filters: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
        let of_filters = self.steps() * 2 * 32 * 8;
        (0..self.filters.div_ceil(FILTERS_OF_WARP) * of_filters).map(move |at| {
            let (place, value, quad, column) = (at / 8, at % 2, at / 2 % 2, at / 4 % 2);
            let (lane, half, step) = (place % 32, place / 32 % 2, place / 64 % self.steps());
            // Lane by lane a column of `mma.sync` has every other pair of filters, so that a thread's sums are neighbours.
            let filter = at / of_filters * FILTERS_OF_WARP
                + lane / 8 * 8
                + (half * 2 + column) * 2
                + lane / 4 % 2;
            self.weight(filters, filter, step * 2 + quad, lane % 4 * 2 + value)
        })
    }

    /// The weight of a value of one quad of the windows, zero beside them.
    fn weight(&self, filters: &[f32], filter: usize, quad: usize, value: usize) -> f32 {
        let Image { channels, kernel: [height, width], pads_begin, .. } = self.image;
        let row = quad / self.row_quads();
        let place = quad % self.row_quads() * 8 + value;
        let shift = pads_begin[1] * channels % 2;
        match place.checked_sub(shift) {
            Some(place) if place < width * channels && row < height && filter < self.filters => {
                let (x, channel) = (place / channels, place % channels);
                let at = ((filter * self.filter_channels + channel) * height + row) * width + x;
                if channel < self.filter_channels { filters[at] } else { 0.0 }
            }
            _ => 0.0,
        }
    }

    /// Quads of pairs of values that cover one row of a window.
    fn row_quads(&self) -> usize {
        let Image { channels, kernel, pads_begin, .. } = self.image;
        (pads_begin[1] * channels % 2 + kernel[1] * channels).div_ceil(8)
    }

    fn steps(&self) -> usize {
        (self.image.kernel[0] * self.row_quads()).div_ceil(2)
    }

    /// An upper bound of the shared memory of a block.
    fn region_bytes(&self, rows: usize) -> usize {
        let Image { channels, kernel, strides, .. } = self.image;
        let region_rows = (rows - 1) * strides[0] + kernel[0];
        let row = (COLUMNS - 1) * strides[1] * channels + self.row_quads() * 8 + 2 * 8;
        region_rows * row.next_multiple_of(8) * self.precision.storage().size_bytes()
    }

    /// Warps of a block that have filters of their own.
    fn warps_n(&self) -> usize {
        if self.filters.div_ceil(FILTERS_OF_WARP).is_multiple_of(2) { 2 } else { 1 }
    }

    fn filter_blocks(&self) -> usize {
        self.filters.div_ceil(FILTERS_OF_WARP * self.warps_n())
    }

    fn blocks(&self, rows: usize) -> usize {
        let [height, width] = self.image.output;
        self.images * height.div_ceil(rows) * width.div_ceil(COLUMNS) * self.filter_blocks()
    }

    fn candidate(&self, rows: usize, operands: &[Argument; 4]) -> Candidate {
        let Image { size, output, pads_begin, .. } = self.image;
        let small = |size: usize| i32::try_from(size).expect("sizes were checked");
        let tiles = [output[0].div_ceil(rows), output[1].div_ceil(COLUMNS)];
        let parameters = Parameters {
            by_filter_blocks: Divider::new(self.filter_blocks()),
            by_tile_columns: Divider::new(tiles[1]),
            by_tile_rows: Divider::new(tiles[0]),
            sizes: [size[0], size[1], output[0], output[1], self.filters].map(small),
            pad_y: small(pads_begin[0]),
            activation: epilogue_activation(self.activation).1,
        };
        let mut arguments = vec![Argument::structure(&parameters)];
        arguments.extend(operands.iter().cloned());
        let launch = Launch {
            source: self.source(rows),
            grid: [u32::try_from(self.blocks(rows)).expect("sizes were checked"), 1, 1],
            threads: WARPS as u32 * 32,
            shared_bytes: 0,
            cluster: [1, 1, 1],
            arguments,
        };
        Candidate::new(format!("stem_conv {rows} rows"), vec![launch], 0)
    }

    fn source(&self, rows: usize) -> KernelSource {
        let Image { size, channels, kernel, strides, pads_begin, .. } = self.image;
        let storage = self.precision.storage();
        let row_bytes = size[1] * channels * storage.size_bytes();
        let load_bytes = [16, 8, 4].into_iter().find(|&bytes| row_bytes.is_multiple_of(bytes));
        let store = [8, 4, 2].into_iter().find(|&count| self.filters.is_multiple_of(count));
        let defines = vec![
            ("STORAGE", storage.cuda_name().to_string()),
            ("MATH", math_define(self.precision).to_string()),
            ("CHANNELS", channels.to_string()),
            ("KERNEL_Y", kernel[0].to_string()),
            ("KERNEL_X", kernel[1].to_string()),
            ("STRIDE_Y", strides[0].to_string()),
            ("STRIDE_X", strides[1].to_string()),
            ("PAD_X", pads_begin[1].to_string()),
            ("LOAD_BYTES", load_bytes.unwrap_or(storage.size_bytes()).to_string()),
            ("ROWS", rows.to_string()),
            ("WARPS_N", self.warps_n().to_string()),
            ("STORE_ELEMENTS", store.unwrap_or(1).to_string()),
            ("ACTIVATION", epilogue_activation(self.activation).0.to_string()),
            ("HAS_BIAS", u8::from(self.has_bias).to_string()),
        ];
        KernelSource::new("stem_conv.cu", TEXT, "stem_conv", defines)
    }
}

/// A convolution that moves by two pixels.
fn example(channels: usize, kernel: usize, filters: usize, width: usize) -> StemConv {
    let pad = kernel / 2;
    let image = Image {
        size: [width; 2],
        channels,
        output: [(width + 2 * pad - kernel) / 2 + 1; 2],
        kernel: [kernel; 2],
        strides: [2; 2],
        dilations: [1; 2],
        pads_begin: [pad; 2],
    };
    let precision = Precision::F16;
    StemConv {
        images: 1,
        image,
        filters,
        filter_channels: channels,
        has_bias: true,
        activation: None,
        precision,
    }
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let bf16 = StemConv {
        precision: Precision::Bf16,
        has_bias: false,
        activation: Some(Activation::HardSwish),
        ..example(4, 5, 30, 31)
    };
    vec![
        example(3, 7, 64, 224).source(16),
        example(3, 3, 32, 224).source(4),
        example(3, 3, 96, 33).source(8),
        example(1, 7, 8, 30).source(16),
        example(24, 1, 144, 56).source(16),
        bf16.source(4),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERANDS: [Argument; 4] = [const { Argument::Null }; 4];

    /// What the kernel computes for one pixel, by the numbers of its lanes and quads.
    fn computed(conv: &StemConv, weights: &[f32], row: impl Fn(usize, usize) -> f32) -> Vec<f32> {
        let mut sums = vec![0.0; conv.filters.next_multiple_of(FILTERS_OF_WARP)];
        for (at, weight) in weights.iter().enumerate() {
            let [value, quad, column, lane, half] =
                [at % 2, at / 2 % 2, at / 4 % 2, at / 8 % 32, at / 256 % 2];
            let (step, block) = (at / 512 % conv.steps(), at / 512 / conv.steps());
            // Column `lane / 4` of `mma.sync` belongs to the thread `lane / 8`, which stores it there.
            let (thread, second) = (lane / 8, lane / 4 % 2);
            let filter = block * 32 + thread * 8 + (half * 2 + column) * 2 + second;
            let quad = step * 2 + quad;
            let (y, quad) = (quad / conv.row_quads(), quad % conv.row_quads());
            sums[filter] += weight * row(y, quad * 8 + lane % 4 * 2 + value);
        }
        sums
    }

    #[test]
    fn weights_meet_the_values_of_their_windows() {
        for (channels, padded, kernel, filters) in
            [(3, 3, 7, 64), (3, 3, 3, 40), (4, 4, 5, 8), (1, 1, 3, 32), (3, 4, 3, 64)]
        {
            let conv =
                StemConv { filter_channels: channels, ..example(padded, kernel, filters, 32) };
            let count = filters * channels * kernel * kernel;
            let plain: Vec<f32> = (0..count).map(|i| (i * 37 % 101) as f32 - 50.0).collect();
            let weights: Vec<f32> = conv.weights(&plain).collect();
            assert_eq!(weights.len() % (64 * 8), 0);
            // The windows begin at the first value, or at the second where pads are odd; others must not count.
            let shift = kernel / 2 * padded % 2;
            let pixel = |y: usize, value: usize| (y * 1000 + value * 7 % 31) as f32;
            let sums = computed(&conv, &weights, pixel);
            for (filter, &sum) in sums[..filters].iter().enumerate() {
                let mut expected = 0.0;
                for channel in 0..channels {
                    for y in 0..kernel {
                        for x in 0..kernel {
                            let at = ((filter * channels + channel) * kernel + y) * kernel + x;
                            expected += plain[at] * pixel(y, shift + x * padded + channel);
                        }
                    }
                }
                assert_eq!(sum, expected, "filter {filter} of {conv:?}");
            }
        }
    }

    #[test]
    fn tiles_are_tall_where_there_are_many() {
        let first = |conv: &StemConv, sms| {
            conv.candidates(&OPERANDS, Chip::H200.with_sms(sms))[0].name.clone()
        };
        let conv = example(3, 7, 64, 224);
        assert_eq!(first(&conv, 132), "stem_conv 2 rows");
        assert_eq!(first(&conv, 4), "stem_conv 16 rows");
    }

    #[test]
    fn windows_that_do_not_fit_are_refused() {
        assert!(example(3, 7, 64, 224).is_supported());
        assert!(!example(5, 3, 64, 224).is_supported());
        assert!(!example(3, 11, 64, 224).is_supported());
        let mut odd = example(3, 3, 64, 224);
        odd.image.strides = [1, 1];
        assert!(!odd.is_supported());
        let precise = StemConv { precision: Precision::F32, ..example(3, 3, 64, 224) };
        assert!(!precise.is_supported());
        let mut point = example(24, 1, 144, 56);
        point.image.strides = [1, 1];
        assert!(point.is_supported());
        point.image.channels = 40;
        assert!(!point.is_supported());
    }
}
