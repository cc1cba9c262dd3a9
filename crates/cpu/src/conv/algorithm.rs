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

    /// Names the packed form of the weights: problems with the same name and the same weights can share them.
    pub fn packing(self, problem: &ConvProblem, isa: Isa) -> String {
        let ConvProblem { channels_in, channels_out, kernel: [height, width], group, .. } = problem;
        let (name, isa) = (self.name(), isa.name());
        format!("{name} {isa} {channels_out}x{channels_in}x{height}x{width} in {group}")
    }

    /// An estimate of the time it takes, in vector multiplications of one worker; only comparable for one problem.
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
        let lanes = isa.lanes() as f64;
        let vectors = |channels: usize| (channels as f64 / lanes).ceil();
        let Geometry { output_height, output_width, .. } = geometry;
        let pixels = (problem.batch * output_height * output_width) as f64;
        let kernel = (problem.kernel[0] * problem.kernel[1]) as f64;
        let group_in = problem.channels_in / problem.group;
        let group_out = problem.channels_out / problem.group;
        let (compute, weights) = match self {
            ConvAlgorithm::Depthwise => (
                pixels * kernel * vectors(problem.channels_in),
                kernel * problem.channels_in as f64,
            ),
            ConvAlgorithm::ImplicitGemm => {
                let groups = problem.group as f64;
                let patch = kernel * group_in as f64;
                let multiply = pixels * patch * vectors(group_out);
                let gather = if kernel == 1.0 { 0.0 } else { pixels * patch * GATHER };
                (groups * (multiply + gather), groups * patch * group_out as f64)
            }
            ConvAlgorithm::Winograd(tile) => {
                let side = tile.output();
                let tiles =
                    problem.batch * output_height.div_ceil(side) * output_width.div_ceil(side);
                let products = tile.products() as f64;
                let rows = tiles as f64 * products;
                let (channels_in, channels_out) =
                    (problem.channels_in as f64, problem.channels_out as f64);
                let multiply = rows * channels_in * vectors(problem.channels_out) * SMALL_PRODUCTS;
                let transforms = rows
                    * TRANSFORM
                    * (vectors(problem.channels_in) + vectors(problem.channels_out));
                (multiply + transforms, products * channels_in * channels_out)
            }
        };
        Ok(compute / workers.max(1) as f64 + weights * WEIGHT)
    }

    /// The algorithm with the least estimated cost.
    pub fn choose(
        problem: &ConvProblem,
        isa: Isa,
        workers: usize,
    ) -> Result<ConvAlgorithm, ConvError> {
        if problem.is_depthwise() && problem.group > 1 {
            return Ok(ConvAlgorithm::Depthwise);
        }
        let mut best = (ConvAlgorithm::ImplicitGemm, f64::INFINITY);
        for algorithm in Self::ALL.into_iter().filter(|algorithm| algorithm.supports(problem)) {
            let cost = algorithm.estimated_cost(problem, isa, workers)?;
            if cost < best.1 {
                best = (algorithm, cost);
            }
        }
        Ok(best.0)
    }
}

/// What a value of a patch costs to gather, in vector multiplications.
const GATHER: f64 = 0.3;

/// How much slower a product of few rows is than one of many.
const SMALL_PRODUCTS: f64 = 1.15;

/// What a vector costs to transform, in vector multiplications.
const TRANSFORM: f64 = 6.0;

/// What a weight costs to bring from memory, in vector multiplications; the caches are taken by activations.
const WEIGHT: f64 = 0.5;
