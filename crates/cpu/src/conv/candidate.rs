//! Owns the ways to compute a convolution: an algorithm with its parameters.

use std::fmt;

use super::algorithm::ConvAlgorithm;
use super::depthwise::{DepthwiseParameters, TaskSize};
use super::implicit_gemm::product_shape;
use super::problem::{ConvError, ConvProblem, Geometry};
use super::winograd::{WinogradParameters, WinogradTile};
use crate::Isa;
use crate::gemm::{GemmCut, GemmParameters, GemmShape, PanelWidth, Share};

/// An algorithm with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConvCandidate {
    /// Vectors over channels.
    Depthwise(DepthwiseParameters),
    /// A matrix product over patches.
    ImplicitGemm(GemmParameters),
    /// By tiles.
    Winograd(WinogradTile, WinogradParameters),
}

/// How many times the least estimated cost an algorithm may have for its parameters to be varied: none of them makes up for
/// more.
const WORTH_VARYING: f64 = 2.0;

/// How a candidate cuts a problem; equal for candidates between which there is no difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Depthwise(TaskSize),
    ImplicitGemm(GemmCut),
    Winograd { tile: WinogradTile, block_tiles: usize, block_channels: usize },
}

impl From<ConvAlgorithm> for ConvCandidate {
    /// The algorithm with the parameters that suit most problems.
    fn from(algorithm: ConvAlgorithm) -> Self {
        match algorithm {
            ConvAlgorithm::Depthwise => Self::Depthwise(DepthwiseParameters::default()),
            ConvAlgorithm::ImplicitGemm => Self::ImplicitGemm(GemmParameters::default()),
            ConvAlgorithm::Winograd(tile) => Self::Winograd(tile, WinogradParameters::default()),
        }
    }
}

impl fmt::Display for ConvCandidate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.algorithm().name();
        match self {
            Self::Depthwise(parameters) => write!(formatter, "{name} {parameters}"),
            Self::ImplicitGemm(parameters) => write!(formatter, "{name} {parameters}"),
            Self::Winograd(_, parameters) => write!(formatter, "{name} {parameters}"),
        }
    }
}

impl ConvCandidate {
    /// The candidate that is taken where nothing was measured.
    pub fn choose(problem: &ConvProblem, isa: Isa, workers: usize) -> Result<Self, ConvError> {
        ConvAlgorithm::choose(problem, isa, workers).map(Self::from)
    }

    /// The candidate with the given name, if it can compute the problem.
    pub fn named(name: &str, problem: &ConvProblem) -> Option<Self> {
        let algorithms = ConvAlgorithm::ALL.into_iter();
        let mut legal = algorithms.filter(|algorithm| is_legal(*algorithm, problem));
        legal.find_map(|algorithm| {
            let parameters = name.strip_prefix(algorithm.name())?.strip_prefix(' ')?;
            match algorithm {
                ConvAlgorithm::Depthwise => DepthwiseParameters::all()
                    .find(|point| point.to_string() == parameters)
                    .map(Self::Depthwise),
                ConvAlgorithm::ImplicitGemm => {
                    GemmParameters::named(parameters).map(Self::ImplicitGemm)
                }
                ConvAlgorithm::Winograd(tile) => WinogradParameters::all()
                    .find(|point| point.to_string() == parameters)
                    .map(|parameters| Self::Winograd(tile, parameters)),
            }
        })
    }

    /// The candidates that cut the problem differently, the one taken unasked first. Algorithms that should take much longer
    /// than another are there with their usual parameters alone.
    pub fn candidates(
        problem: &ConvProblem,
        isa: Isa,
        workers: usize,
    ) -> Result<Vec<Self>, ConvError> {
        let geometry = problem.geometry()?;
        let first = Self::choose(problem, isa, workers)?;
        let algorithms = ConvAlgorithm::ALL.into_iter();
        let costs: Vec<(ConvAlgorithm, f64)> = algorithms
            .filter(|algorithm| is_legal(*algorithm, problem))
            .map(|algorithm| Ok((algorithm, algorithm.estimated_cost(problem, isa, workers)?)))
            .collect::<Result<_, ConvError>>()?;
        let least = costs.iter().fold(f64::INFINITY, |least, (_, cost)| least.min(*cost));
        let usual = costs.iter().map(|(algorithm, _)| Self::from(*algorithm));
        let worth_varying = costs.iter().filter(|(_, cost)| *cost <= least * WORTH_VARYING);
        let others = worth_varying.flat_map(|(algorithm, _)| match *algorithm {
            ConvAlgorithm::Depthwise => DepthwiseParameters::all().map(Self::Depthwise).collect(),
            ConvAlgorithm::ImplicitGemm => {
                let shape = product_shape(&geometry);
                let parameters = GemmParameters::candidates(isa, &shape, workers);
                parameters.into_iter().map(Self::ImplicitGemm).collect()
            }
            ConvAlgorithm::Winograd(tile) => WinogradParameters::all()
                .map(|parameters| Self::Winograd(tile, parameters))
                .collect::<Vec<_>>(),
        });
        let mut found: Vec<(Cut, Self)> = Vec::new();
        for candidate in std::iter::once(first).chain(usual).chain(others) {
            let cut = candidate.cut(&geometry, isa, workers);
            if found.iter().all(|(known, _)| *known != cut) {
                found.push((cut, candidate));
            }
        }
        Ok(found.into_iter().map(|(_, candidate)| candidate).collect())
    }

    /// The algorithm.
    pub fn algorithm(&self) -> ConvAlgorithm {
        match self {
            Self::Depthwise(_) => ConvAlgorithm::Depthwise,
            Self::ImplicitGemm(_) => ConvAlgorithm::ImplicitGemm,
            Self::Winograd(tile, _) => ConvAlgorithm::Winograd(*tile),
        }
    }

    /// Names the packed form of the weights: problems with the same name and the same weights can share them.
    pub fn packing(&self, problem: &ConvProblem, isa: Isa) -> String {
        let ConvProblem { channels_in, channels_out, kernel: [height, width], group, .. } = problem;
        let (name, isa) = (self.algorithm().name(), isa.name());
        let shape =
            format!("{name} {isa} {channels_out}x{channels_in}x{height}x{width} in {group}");
        match self {
            Self::Depthwise(_) => shape,
            Self::ImplicitGemm(GemmParameters { width: PanelWidth::Full, .. }) => shape,
            Self::ImplicitGemm(GemmParameters { width, .. }) => format!("{shape} {width:?}"),
            Self::Winograd(_, parameters) => {
                format!("{shape} by {}", parameters.block_channels(*channels_out))
            }
        }
    }

    /// The product that a problem is as a matrix product over patches, for each group.
    pub(crate) fn product_shape(problem: &ConvProblem) -> Result<GemmShape, ConvError> {
        Ok(product_shape(&problem.geometry()?))
    }

    /// How the problem is shared out.
    pub(crate) fn share(
        &self,
        problem: &ConvProblem,
        isa: Isa,
        workers: usize,
    ) -> Result<Share, ConvError> {
        let geometry = problem.geometry()?;
        let Geometry { output_height, output_width, .. } = geometry;
        let ConvProblem { batch, channels_in, channels_out, kernel, width, .. } = *problem;
        Ok(match self.cut(&geometry, isa, workers) {
            Cut::ImplicitGemm(cut) => cut.share(),
            Cut::Depthwise(task) => Share {
                tasks: (batch * output_height).div_ceil(task.rows)
                    * channels_in.div_ceil(task.channels),
                values: (task.rows + kernel[0]) * width * task.channels.min(channels_in),
            },
            Cut::Winograd { tile, block_tiles, block_channels } => {
                let side = tile.output();
                let tiles = batch * output_height.div_ceil(side) * output_width.div_ceil(side);
                let pixels = block_tiles * (channels_in + block_channels);
                Share {
                    tasks: tiles.div_ceil(block_tiles) * channels_out.div_ceil(block_channels),
                    values: tile.products() * (pixels + channels_in * block_channels),
                }
            }
        })
    }

    fn cut(&self, geometry: &Geometry, isa: Isa, workers: usize) -> Cut {
        match *self {
            Self::Depthwise(parameters) => Cut::Depthwise(parameters.task_size(geometry, workers)),
            Self::ImplicitGemm(parameters) => {
                Cut::ImplicitGemm(parameters.cut(isa, &product_shape(geometry), workers))
            }
            Self::Winograd(tile, parameters) => Cut::Winograd {
                tile,
                block_tiles: parameters.block_tiles(geometry, tile, workers),
                block_channels: parameters.block_channels(geometry.problem.channels_out),
            },
        }
    }
}

/// Whether an algorithm can compute the problem, and is not hopeless: a product for each group has next to nothing to do in a
/// depthwise convolution.
fn is_legal(algorithm: ConvAlgorithm, problem: &ConvProblem) -> bool {
    let is_depthwise = problem.is_depthwise() && problem.group > 1;
    algorithm.is_affordable(problem) && (!is_depthwise || algorithm == ConvAlgorithm::Depthwise)
}

#[cfg(test)]
mod tests;
