//! Depthwise convolution of channels-last images: `depthwise.cu`.

use std::fmt;

use bytemuck::{Pod, Zeroable};
use weft_ir::Activation;

use super::activation::{ActivationParameters, activation};
use super::divider::Divider;
use super::gemm::Image;
use crate::launch::{Argument, Candidate, KernelSource, Launch};
use crate::{Chip, Storage};

const TEXT: &str = concat!(
    include_str!("../../kernels/divider.cuh"),
    include_str!("../../kernels/packed.cuh"),
    include_str!("../../kernels/depthwise.cu")
);

/// Threads of a block: few, so that small images spread over all SMs.
const THREADS: usize = 64;

/// Rows of pixels that a thread computes, where there are as many.
const ROWS: usize = 2;

/// Columns of pixels that a thread may compute.
const COLUMNS: [usize; 3] = [1, 2, 4];

/// Threads that keep an SM busy.
const THREADS_OF_SM: usize = 192;

/// The largest filter that is written out in the kernel.
const MAX_TAPS: usize = 81;

/// One filter for each channel of some images.
#[derive(Clone, Debug)]
pub(crate) struct DepthwiseProblem {
    pub(crate) images: usize,
    pub(crate) image: Image,
    pub(crate) has_bias: bool,
    pub(crate) has_residual: bool,
    pub(crate) activation: Option<Activation>,
    pub(crate) storage: Storage,
}

/// The structure `Problem` of `depthwise.cu`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Parameters {
    by_channel_pieces: Divider,
    by_tile_columns: Divider,
    by_tile_rows: Divider,
    sizes: [i32; 6],
    pads: [i32; 2],
    activation: ActivationParameters,
}

/// All that a candidate's time depends on, apart from the precision and the partition.
impl fmt::Display for DepthwiseProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Image { size, channels, output, kernel, strides, dilations, pads_begin } = &self.image;
        let pair = |[first, second]: &[usize; 2]| format!("{first}x{second}");
        write!(f, "depthwise {}x{}x{channels} -> {}", self.images, pair(size), pair(output))?;
        write!(f, ", {}, stride {}, pad {}", pair(kernel), pair(strides), pair(pads_begin))?;
        write!(f, ", dilation {}", pair(dilations))?;
        if self.has_bias {
            write!(f, ", bias")?;
        }
        if self.has_residual {
            write!(f, ", residual")?;
        }
        match self.activation {
            Some(activation) => write!(f, ", {activation:?}"),
            None => Ok(()),
        }
    }
}

impl DepthwiseProblem {
    /// The candidates; none where the kernel cannot compute it. The arguments are those of `depthwise.cu`, the
    /// parameters left out.
    pub(crate) fn candidates(&self, operands: &[Argument; 5], chip: Chip) -> Vec<Candidate> {
        let image = &self.image;
        let elements = |size: [usize; 2]| self.images * size[0] * size[1] * image.channels;
        let fits = image.kernel[0] * image.kernel[1] <= MAX_TAPS
            && (1..=i32::MAX as usize).contains(&elements(image.output))
            && elements(image.size) <= i32::MAX as usize;
        if !fits {
            return Vec::new();
        }
        // Windows that move by more have less in common.
        let most = if image.strides[1] == 1 { 4 } else { 2 };
        let mut tiles: Vec<[usize; 2]> = COLUMNS
            .into_iter()
            .filter(|&columns| columns <= most.min(image.output[1]))
            .map(|columns| [ROWS.min(image.output[0]), columns])
            .collect();
        // Several pixels per thread read less, once there are threads enough for every SM.
        let fills = |tile| self.threads(tile) >= chip.sm_count as usize * THREADS_OF_SM;
        tiles.sort_by_key(|&tile| if fills(tile) { 8 - tile[1] } else { 8 + tile[1] });
        tiles.into_iter().map(|tile| self.candidate(tile, operands)).collect()
    }

    /// Neighbouring channels that one thread computes: as many as one load brings.
    fn vector(&self) -> usize {
        let most = 16 / self.storage.size_bytes();
        (0..)
            .map(|shift| most >> shift)
            .find(|&count| self.image.channels.is_multiple_of(count))
            .unwrap_or(1)
    }

    fn threads(&self, [rows, columns]: [usize; 2]) -> usize {
        let [height, width] = self.image.output;
        let tiles = height.div_ceil(rows) * width.div_ceil(columns);
        self.images * tiles * (self.image.channels / self.vector())
    }

    fn candidate(&self, tile: [usize; 2], operands: &[Argument; 5]) -> Candidate {
        let Image { size, output, channels, .. } = self.image;
        let image = &self.image;
        let small = |size: usize| i32::try_from(size).expect("sizes were checked");
        let sizes = [self.images, size[0], size[1], channels, output[0], output[1]].map(small);
        let parameters = Parameters {
            by_channel_pieces: Divider::new(channels / self.vector()),
            by_tile_columns: Divider::new(output[1].div_ceil(tile[1])),
            by_tile_rows: Divider::new(output[0].div_ceil(tile[0])),
            sizes,
            pads: image.pads_begin.map(small),
            activation: activation(self.activation).1,
        };
        let blocks = self.threads(tile).div_ceil(THREADS);
        let mut arguments = vec![Argument::structure(&parameters)];
        arguments.extend(operands.iter().cloned());
        let launch = Launch {
            source: self.source(tile),
            grid: [u32::try_from(blocks).expect("sizes were checked"), 1, 1],
            threads: THREADS as u32,
            shared_bytes: 0,
            cluster: [1, 1, 1],
            arguments,
        };
        let name = format!("depthwise {}x{} pixels", tile[0], tile[1]);
        Candidate::new(name, vec![launch], 0)
    }

    fn source(&self, [rows, columns]: [usize; 2]) -> KernelSource {
        let image = &self.image;
        let flag = |is_set: bool| u8::from(is_set).to_string();
        let defines = vec![
            ("STORAGE", self.storage.cuda_name().to_string()),
            ("VECTOR", self.vector().to_string()),
            ("ROWS", rows.to_string()),
            ("COLUMNS", columns.to_string()),
            ("KERNEL_Y", image.kernel[0].to_string()),
            ("KERNEL_X", image.kernel[1].to_string()),
            ("STRIDE_Y", image.strides[0].to_string()),
            ("STRIDE_X", image.strides[1].to_string()),
            ("DILATION_Y", image.dilations[0].to_string()),
            ("DILATION_X", image.dilations[1].to_string()),
            ("ACTIVATION", activation(self.activation).0.to_string()),
            ("HAS_BIAS", flag(self.has_bias)),
            ("HAS_RESIDUAL", flag(self.has_residual)),
        ];
        KernelSource::new("depthwise.cu", TEXT, "depthwise", defines)
    }
}

fn example(channels: usize, side: usize, kernel: usize, storage: Storage) -> DepthwiseProblem {
    let image = Image {
        size: [side; 2],
        channels,
        output: [side.div_ceil(2); 2],
        kernel: [kernel; 2],
        strides: [2; 2],
        dilations: [1; 2],
        pads_begin: [kernel / 2; 2],
    };
    let activation = Some(Activation::HardSwish);
    DepthwiseProblem { images: 1, image, has_bias: true, has_residual: true, activation, storage }
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let storages = [Storage::F16, Storage::Bf16, Storage::F32];
    let problems = storages
        .into_iter()
        .flat_map(|storage| [example(64, 56, 3, storage), example(17, 7, 5, storage)]);
    problems.flat_map(|problem| COLUMNS.map(|columns| problem.source([ROWS, columns]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERANDS: [Argument; 5] = [const { Argument::Null }; 5];

    #[test]
    fn threads_cover_every_output() {
        for problem in [example(64, 56, 3, Storage::F16), example(17, 7, 5, Storage::F32)] {
            for tile in COLUMNS.map(|columns| [ROWS, columns]) {
                let launch = problem.candidate(tile, &OPERANDS).launches.remove(0);
                let threads = launch.grid[0] as usize * launch.threads as usize;
                let [height, width] = problem.image.output;
                let pieces = problem.image.channels / problem.vector();
                assert!(threads * tile[0] * tile[1] >= height * width * pieces);
            }
        }
    }

    #[test]
    fn channels_are_computed_as_many_as_divide_them() {
        for (channels, storage, vector) in [
            (64, Storage::F16, 8),
            (20, Storage::F16, 4),
            (17, Storage::F16, 1),
            (64, Storage::F32, 4),
        ] {
            assert_eq!(example(channels, 8, 3, storage).vector(), vector);
        }
    }

    #[test]
    fn small_images_get_a_thread_per_column_and_large_ones_do_not() {
        let first =
            |problem: DepthwiseProblem| problem.candidates(&OPERANDS, Chip::H200)[0].name.clone();
        assert_eq!(first(example(480, 14, 3, Storage::F16)), "depthwise 2x1 pixels");
        let large = DepthwiseProblem { images: 16, ..example(64, 112, 3, Storage::F16) };
        assert_eq!(first(large.clone()), "depthwise 2x2 pixels");
        let mut dense = large;
        dense.image.strides = [1, 1];
        assert_eq!(first(dense.clone()), "depthwise 2x4 pixels");
        dense.image.output = [1, 3];
        assert_eq!(first(dense), "depthwise 1x1 pixels");
    }

    #[test]
    fn filters_too_large_to_write_out_are_refused() {
        assert!(example(64, 56, 11, Storage::F16).candidates(&OPERANDS, Chip::H200).is_empty());
    }
}
