//! Every channel of channels-last images brought to mean 0 and variance 1, then scaled and shifted.

use bytemuck::{Pod, Zeroable, bytes_of};

use super::widening::widening;
use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str = include_str!("../../kernels/normalise_columns.cu");

/// Threads of a block, and groups of channels that it normalises, as the template has them.
const THREADS: u32 = 256;
const COLUMNS: usize = 8;

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Shape {
    positions: u32,
    channels: u32,
    epsilon: f32,
}

/// Images whose channels are normalised each by itself; none of the sizes is zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelNormalisation {
    pub(crate) storage: Storage,
    pub(crate) images: usize,
    pub(crate) positions: usize,
    pub(crate) channels: usize,
    pub(crate) epsilon: f32,
    /// How scale and bias are stored.
    pub(crate) parameter_storage: Storage,
}

impl ChannelNormalisation {
    /// The launch; scale and bias have one element per channel.
    pub(crate) fn launch(
        &self,
        scale: Argument,
        bias: Argument,
        from: Argument,
        to: Argument,
    ) -> Launch {
        let width = widening(self.storage, [self.channels]);
        let tiles = (self.channels / width).div_ceil(COLUMNS);
        let shape = Shape {
            positions: self.positions as u32,
            channels: self.channels as u32,
            epsilon: self.epsilon,
        };
        Launch {
            source: self.source(width),
            grid: [(self.images * tiles) as u32, 1, 1],
            threads: THREADS,
            shared_bytes: 0,
            cluster: [1, 1, 1],
            arguments: vec![from, scale, bias, to, Argument::Bytes(bytes_of(&shape).to_vec())],
        }
    }

    fn source(&self, width: usize) -> KernelSource {
        let defines = vec![
            ("STORAGE", self.storage.cuda_name().to_string()),
            ("PARAMETER", self.parameter_storage.cuda_name().to_string()),
            ("WIDTH", width.to_string()),
        ];
        KernelSource::new("normalise_columns.cu", TEXT, "normalise_columns", defines)
    }
}

fn example(storage: Storage, channels: usize) -> ChannelNormalisation {
    let (images, positions, epsilon, parameter_storage) = (2, 49, 1e-5, Storage::F32);
    ChannelNormalisation { storage, images, positions, channels, epsilon, parameter_storage }
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let sources = [(Storage::F16, 64), (Storage::Bf16, 3), (Storage::F32, 20)];
    let source =
        |(storage, channels)| example(storage, channels).source(widening(storage, [channels]));
    sources.map(source).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_channel_of_every_image() {
        let blocks = |channels| {
            let arguments = [const { Argument::Null }; 4];
            let [scale, bias, from, to] = arguments;
            example(Storage::F16, channels).launch(scale, bias, from, to).grid[0]
        };
        assert_eq!((blocks(64), blocks(72), blocks(3)), (2, 4, 2));
    }
}
