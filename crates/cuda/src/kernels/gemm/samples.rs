//! Typical products, for checking that kernels compile.

use super::candidates::source;
use super::problem::{GemmProblem, Image, Left, Right};
use super::split::Split;
use super::streamed;
use super::tile::{Multiplier, TILES, Tile};
use crate::launch::KernelSource;
use crate::{Precision, Storage};

/// A convolution, rows by constant columns, and a product of two matrices that are both computed.
fn of_precision(precision: Precision) -> [GemmProblem; 3] {
    let image = Image {
        size: [14, 14],
        channels: 64,
        output: [14, 14],
        kernel: [3, 3],
        strides: [1, 1],
        dilations: [1, 1],
        pads_begin: [1, 1],
    };
    let convolution = GemmProblem {
        m: 196,
        n: 64,
        k: 576,
        stack: 1,
        stack_steps: [0; 3],
        left: Left::Image(image),
        right: Right { by_rows: false, stride: 576, is_weights: true },
        bias: Some(Storage::F32),
        has_residual: true,
        activation: Some(weft_ir::Activation::Relu),
        precision,
    };
    let rows = GemmProblem { left: Left::Matrix { stride: 576 }, ..convolution.clone() };
    let product = GemmProblem {
        n: 63,
        left: Left::Matrix { stride: 578 },
        right: Right { by_rows: true, stride: 66, is_weights: false },
        bias: None,
        has_residual: false,
        activation: None,
        ..convolution.clone()
    };
    [convolution, rows, product]
}

/// Typical problems: every precision, every kind of operand.
pub(crate) fn sample_problems() -> Vec<GemmProblem> {
    Precision::ALL.into_iter().flat_map(of_precision).collect()
}

/// Typical variants of the kernel: every precision, every kind of operand, every way to split.
pub(crate) fn samples() -> Vec<KernelSource> {
    let mut sources = Vec::new();
    for [convolution, rows, product] in Precision::ALL.map(of_precision) {
        for split in [Split::None, Split::Cluster(4), Split::Workspace(4)] {
            for tile in [&TILES[3], &TILES[12]] {
                sources.push(source(&convolution, 1, tile, split, false));
                sources.push(source(&product, 1, tile, split, false));
            }
            let by_warpgroup =
                TILES.iter().filter(|tile| tile.multiplier == Multiplier::Warpgroup).step_by(4);
            if convolution.element_bytes() == 2 {
                for tile in by_warpgroup {
                    sources.push(source(&convolution, 3, tile, split, false));
                    let bulk = Tile { is_bulk: true, ..*tile };
                    let is_rounded_first = split == Split::None;
                    sources.push(source(&convolution, 1, &bulk, split, is_rounded_first));
                    sources.push(source(&rows, 3, &bulk, split, false));
                    sources.push(source(&rows, 1, &bulk, split, false));
                }
            }
        }
    }
    sources.extend(streamed::samples(&sample_problems()));
    sources
}
