//! Owns the choice among the algorithms for convolution.

use super::depthwise::DepthwiseConv;
use super::problem::{ConvError, ConvProblem, Geometry};
use super::winograd::{WinogradConv, WinogradTile};
use crate::Isa;

/// A way to compute a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConvAlgorithm {
    /// Vectors over channels, for one kernel per channel.
    Depthwise,
    /// A matrix product over patches; can do everything.
    ImplicitGemm,
    /// 3x3 kernels by tiles.
    Winograd(WinogradTile),
}

impl ConvAlgorithm {
    /// All algorithms.
    pub const ALL: [ConvAlgorithm; 4] = [
        ConvAlgorithm::Depthwise,
        ConvAlgorithm::ImplicitGemm,
        ConvAlgorithm::Winograd(WinogradTile::Two),
        ConvAlgorithm::Winograd(WinogradTile::Four),
    ];

    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            ConvAlgorithm::Depthwise => "depthwise",
            ConvAlgorithm::ImplicitGemm => "implicit_gemm",
            ConvAlgorithm::Winograd(WinogradTile::Two) => "winograd_2x2",
            ConvAlgorithm::Winograd(WinogradTile::Four) => "winograd_4x4",
        }
    }

    /// Whether it can compute the problem.
    pub fn supports(self, problem: &ConvProblem) -> bool {
        match self {
            ConvAlgorithm::Depthwise => DepthwiseConv::supports(problem),
            ConvAlgorithm::ImplicitGemm => true,
            ConvAlgorithm::Winograd(_) => WinogradConv::supports(problem),
        }
    }

    /// An estimate of the time it takes, in processor cycles; what counts is the order of the algorithms.
    pub fn estimated_cost(
        self,
        problem: &ConvProblem,
        isa: Isa,
        workers: usize,
    ) -> Result<f64, ConvError> {
        let geometry = problem.geometry()?;
        if !self.supports(problem) {
            return Err(ConvError::Unsupported { algorithm: self.name() });
        }
        // Narrow vectors take as many cycles fewer as they are narrower.
        let cycles = |channels: usize| {
            let lanes = isa.lanes();
            channels.div_ceil(lanes) as f64 * lanes as f64 / VALUES_PER_CYCLE
        };
        let ConvProblem { batch, channels_in, channels_out, group, .. } = *problem;
        let Geometry { output_height, output_width, .. } = geometry;
        let pixels = (batch * output_height * output_width) as f64;
        let kernel = (problem.kernel[0] * problem.kernel[1]) as f64;
        let (compute, weights) = match self {
            ConvAlgorithm::Depthwise => {
                (pixels * kernel * cycles(channels_in), kernel * channels_in as f64)
            }
            ConvAlgorithm::ImplicitGemm => {
                let patch = kernel * (channels_in / group) as f64;
                let gather = if kernel == 1.0 { 0.0 } else { GATHER };
                let row = patch * (cycles(channels_out / group) + gather);
                (group as f64 * pixels * row, patch * channels_out as f64)
            }
            ConvAlgorithm::Winograd(tile) => {
                let side = tile.output();
                let tiles = batch * output_height.div_ceil(side) * output_width.div_ceil(side);
                let products = tile.products() as f64;
                let multiply = channels_in as f64 * cycles(channels_out) * SMALL_PRODUCTS;
                let transform = TRANSFORM * (cycles(channels_in) + cycles(channels_out));
                let weights = products * channels_in as f64 * channels_out as f64;
                (tiles as f64 * products * (multiply + transform), weights)
            }
        };
        let compute = compute / workers.max(1) as f64;
        let stream = weights * if workers > 1 { WEIGHT_SHARED } else { WEIGHT_ALONE };
        // Computing and waiting for weights overlap in part.
        Ok(compute.max(stream) + 0.5 * compute.min(stream))
    }

    /// Whether it can compute the problem without taking much more memory for its weights than the model.
    pub(crate) fn is_affordable(self, problem: &ConvProblem) -> bool {
        self.supports(problem) && self.weight_elements(problem) <= MOST_WEIGHTS
    }

    /// How many weights it holds beyond those of the convolution itself: the tiles of Winograd's algorithm.
    fn weight_elements(self, problem: &ConvProblem) -> usize {
        match self {
            ConvAlgorithm::Winograd(WinogradTile::Four) => {
                WinogradTile::Four.products() * problem.channels_in * problem.channels_out
            }
            _ => 0,
        }
    }

    /// The algorithm with the least estimated cost, among those that do not take much more memory than the model.
    pub fn choose(
        problem: &ConvProblem,
        isa: Isa,
        workers: usize,
    ) -> Result<ConvAlgorithm, ConvError> {
        if problem.is_depthwise() && problem.group > 1 {
            return Ok(ConvAlgorithm::Depthwise);
        }
        let mut best = (ConvAlgorithm::ImplicitGemm, f64::INFINITY);
        for algorithm in Self::ALL.into_iter().filter(|algorithm| algorithm.is_affordable(problem))
        {
            let cost = algorithm.estimated_cost(problem, isa, workers)?;
            if cost < best.1 {
                best = (algorithm, cost);
            }
        }
        Ok(best.0)
    }
}

/// Products that a core adds per cycle.
const VALUES_PER_CYCLE: f64 = 16.0;

/// The most weights that the larger Winograd tile may have: beyond, the smaller one takes half of them.
const MOST_WEIGHTS: usize = 4 << 20;

/// What a value of a patch costs to gather, in cycles.
const GATHER: f64 = 0.3;

/// How much slower a product of few rows is than one of many.
const SMALL_PRODUCTS: f64 = 1.15;

/// What a vector costs to transform, in cycles.
const TRANSFORM: f64 = 6.0;

/// What a weight costs to bring from memory, in cycles: between two runs of a layer, the others have taken the caches.
const WEIGHT_ALONE: f64 = 0.9;
/// The same with several cores asking for weights.
const WEIGHT_SHARED: f64 = 0.6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_get_the_algorithm_that_measures_best_within_memory() {
        let layer = |channels: usize, size: usize, kernel: usize, group: usize| ConvProblem {
            batch: 1,
            height: size,
            width: size,
            channels_in: channels,
            channels_out: channels,
            kernel: [kernel, kernel],
            strides: [1, 1],
            dilations: [1, 1],
            pads_begin: [kernel / 2, kernel / 2],
            pads_end: [kernel / 2, kernel / 2],
            group,
        };
        let small = ConvAlgorithm::Winograd(WinogradTile::Two);
        let large = ConvAlgorithm::Winograd(WinogradTile::Four);
        let cases = [
            (layer(64, 56, 3, 1), large),
            (layer(256, 14, 3, 1), large),
            (layer(512, 7, 3, 1), small),
            // The larger tile measures best here too, but its weights would be twice as large.
            (layer(512, 28, 3, 1), small),
            (ConvProblem { batch: 8, ..layer(512, 7, 3, 1) }, small),
            (layer(64, 56, 1, 1), ConvAlgorithm::ImplicitGemm),
            (layer(64, 56, 5, 1), ConvAlgorithm::ImplicitGemm),
            (ConvProblem { strides: [2, 2], ..layer(64, 56, 3, 1) }, ConvAlgorithm::ImplicitGemm),
            (layer(64, 56, 3, 4), ConvAlgorithm::ImplicitGemm),
            (layer(64, 56, 3, 64), ConvAlgorithm::Depthwise),
        ];
        for (problem, expected) in cases {
            for isa in Isa::ALL {
                for workers in [1, 2] {
                    let chosen = ConvAlgorithm::choose(&problem, isa, workers);
                    assert_eq!(chosen, Ok(expected), "{problem:?} {isa:?} {workers}");
                }
            }
        }
    }
}
