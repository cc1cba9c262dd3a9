//! Owns the transformed weights of a Winograd convolution.

use super::parameters::WinogradParameters;
use super::transform::{Four, Transform, TransformKernels, Two};
use crate::Isa;
use crate::conv::problem::{ConvError, check_length};
use crate::gemm::{PackedB, PanelWidth, WeightMatrix, WeightOrder};

/// The side of a tile of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WinogradTile {
    /// Two by two pixels: 2.25 times fewer multiplications, 1.8 times more weights.
    Two,
    /// Four by four pixels: four times fewer multiplications, four times more weights.
    Four,
}

/// 3x3 kernels, transformed and packed for one instruction set.
#[derive(Debug)]
pub struct WinogradWeights {
    pub(super) tile: WinogradTile,
    pub(super) channels_in: usize,
    pub(super) channels_out: usize,
    pub(super) block_channels: usize,
    /// For each block of output channels, one matrix per product of a tile.
    matrices: Vec<PackedB>,
}

impl WinogradTile {
    /// Rows and columns of output pixels.
    pub(crate) fn output(self) -> usize {
        match self {
            WinogradTile::Two => 2,
            WinogradTile::Four => 4,
        }
    }

    /// Products per tile and channel.
    pub(crate) fn products(self) -> usize {
        (self.output() + 2).pow(2)
    }
}

impl WinogradWeights {
    /// Transforms and packs `weights`, given as `[channels_out, channels_in, 3, 3]`; `channels` are those of input and output.
    pub fn pack(
        isa: Isa,
        tile: WinogradTile,
        parameters: WinogradParameters,
        channels: [usize; 2],
        weights: &[f32],
    ) -> Result<Self, ConvError> {
        let [channels_in, channels_out] = channels;
        let expected = channels_in
            .checked_mul(channels_out)
            .and_then(|kernels| kernels.checked_mul(9))
            .ok_or(ConvError::Overflow)?;
        check_length("the weight", weights, expected)?;
        if expected == 0 {
            return Err(ConvError::Zero { what: "number of channels" });
        }
        let block_channels = parameters.block_channels(channels_out);
        let blocks = channels_out.div_ceil(block_channels);
        let mut packed = Self {
            tile,
            channels_in,
            channels_out,
            block_channels,
            matrices: Vec::with_capacity(blocks * tile.products()),
        };
        match tile {
            WinogradTile::Two => packed.fill::<Two, 4, 2>(isa, weights)?,
            WinogradTile::Four => packed.fill::<Four, 6, 4>(isa, weights)?,
        }
        Ok(packed)
    }

    fn fill<T: Transform<INPUT, OUTPUT>, const INPUT: usize, const OUTPUT: usize>(
        &mut self,
        isa: Isa,
        weights: &[f32],
    ) -> Result<(), ConvError> {
        let matrix = &T::kernel();
        let depth = self.channels_in;
        let (kernels, _) = weights.as_chunks::<9>();
        let most = self.block_channels.min(self.channels_out) * depth;
        let mut planes = vec![0.0; INPUT * INPUT * most];
        for kernels in kernels.chunks(most) {
            // One plane per product, in the order of the kernels: output channels of input channels.
            let (stride, target) = (kernels.len(), &mut planes[..]);
            isa.run(TransformKernels { matrix, kernels, target, stride });
            for data in planes.chunks_exact(stride).take(INPUT * INPUT) {
                let (columns, order) = (stride / depth, WeightOrder::NByK);
                let matrix = WeightMatrix { data, depth, columns, order };
                self.matrices.push(PackedB::pack(isa, PanelWidth::Full, &matrix)?);
            }
        }
        Ok(())
    }

    /// How many blocks of output channels there are.
    pub(super) fn blocks(&self) -> usize {
        self.matrices.len() / self.tile.products()
    }

    /// The matrices of a block of output channels, one per product.
    pub(super) fn block(&self, index: usize) -> &[PackedB] {
        let products = self.tile.products();
        &self.matrices[index * products..(index + 1) * products]
    }

    /// All their values, as they lie in memory.
    pub(crate) fn values(&self) -> impl Iterator<Item = &[f32]> {
        self.matrices.iter().map(PackedB::data)
    }

    /// How much memory they take.
    pub fn bytes(&self) -> usize {
        self.matrices.iter().map(PackedB::bytes).sum()
    }
}
