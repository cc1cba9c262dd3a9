//! What the time of a candidate depends on, in numbers.

use super::candidate::Candidate;
use super::fused_operator::{FusedOperator, Product};
use crate::Isa;
use crate::conv::{ConvAlgorithm, ConvCandidate, ConvProblem};
use crate::gemm::{GemmParameters, GemmShape, PanelWidth, RowCopies};

/// Where a candidate lies in the space of all: the algorithm, then its parameters, with zeros to equal length.
pub(super) fn parameters(candidate: &Candidate) -> Vec<i32> {
    let number = |value: usize| i32::try_from(value).unwrap_or(i32::MAX);
    let gemm = |family: i32, parameters: &GemmParameters| {
        let limits = parameters.limits;
        [
            family,
            number(limits.depth),
            number(limits.rows),
            number(limits.panel_values),
            number(limits.tiles_per_worker),
            i32::from(parameters.width == PanelWidth::OneVector),
            match limits.copies {
                RowCopies::AsNeeded => 0,
                RowCopies::Always => 1,
                RowCopies::Never => 2,
            },
        ]
    };
    let place = match candidate {
        Candidate::Linear(parameters) => gemm(0, parameters),
        Candidate::Conv(ConvCandidate::ImplicitGemm(parameters)) => gemm(1, parameters),
        Candidate::Conv(ConvCandidate::Depthwise(parameters)) => {
            let or_zero = |size: Option<usize>| size.map_or(0, number);
            [2, or_zero(parameters.rows), or_zero(parameters.channels), 0, 0, 0, 0]
        }
        Candidate::Conv(ConvCandidate::Winograd(tile, parameters)) => {
            let family = 1 + number(tile.output());
            [family, number(parameters.tiles), number(parameters.channels), 0, 0, 0, 0]
        }
    };
    place.to_vec()
}

/// The logarithm of a size that may be zero.
fn log2(size: usize) -> f32 {
    ((size + 1) as f32).log2()
}

/// What the time depends on, for a model that learns it: the problem first, then the candidate. Every candidate of every
/// operator has equally many.
pub(super) fn features(
    operator: &FusedOperator,
    candidate: &Candidate,
    isa: Isa,
    workers: usize,
) -> Vec<f32> {
    let problem = match operator.product {
        Product::Conv(problem) => problem,
        Product::Linear { rows, depth, columns } => pointwise(rows, depth, columns),
    };
    let mut features = problem_features(&problem, isa, workers);
    features.push(f32::from(u8::from(operator.has_residual)));
    features.extend(candidate_features(&problem, candidate, isa, workers));
    features
}

/// A product as the convolution that computes it.
fn pointwise(rows: usize, depth: usize, columns: usize) -> ConvProblem {
    ConvProblem {
        batch: 1,
        height: rows,
        width: 1,
        channels_in: depth,
        channels_out: columns,
        kernel: [1, 1],
        strides: [1, 1],
        dilations: [1, 1],
        pads_begin: [0, 0],
        pads_end: [0, 0],
        group: 1,
    }
}

fn problem_features(problem: &ConvProblem, isa: Isa, workers: usize) -> Vec<f32> {
    let [height, width] = problem.output_size().unwrap_or_default();
    let positions = problem.kernel[0] * problem.kernel[1];
    let rows = problem.batch * height * width;
    let depth = positions * problem.channels_in / problem.group;
    let input = problem.batch * problem.height * problem.width * problem.channels_in;
    vec![
        log2(rows),
        log2(depth),
        log2(problem.channels_out / problem.group),
        problem.flops().map_or(0.0, |flops| (flops as f32 + 1.0).log2()),
        log2(depth * problem.channels_out),
        log2(input),
        log2(positions),
        log2(problem.group),
        log2(workers),
        log2(isa.lanes()),
    ]
}

/// How many numbers describe the parameters and the cut of a product, and how many those of the other algorithms.
const PRODUCT_FEATURES: usize = 10;
const BLOCK_FEATURES: usize = 4;

fn candidate_features(
    problem: &ConvProblem,
    candidate: &Candidate,
    isa: Isa,
    workers: usize,
) -> Vec<f32> {
    let mut product = [0.0; PRODUCT_FEATURES];
    let mut blocks = [0.0; BLOCK_FEATURES];
    let algorithm = match candidate {
        Candidate::Linear(_) => ConvAlgorithm::ImplicitGemm,
        Candidate::Conv(candidate) => candidate.algorithm(),
    };
    match candidate {
        Candidate::Linear(parameters)
        | Candidate::Conv(ConvCandidate::ImplicitGemm(parameters)) => {
            let shape = ConvCandidate::product_shape(problem);
            product =
                shape.map_or(product, |shape| product_features(parameters, &shape, isa, workers));
        }
        Candidate::Conv(ConvCandidate::Winograd(_, parameters)) => {
            blocks[0] = log2(parameters.tiles);
            blocks[1] = log2(parameters.channels);
        }
        Candidate::Conv(ConvCandidate::Depthwise(parameters)) => {
            blocks[2] = log2(parameters.rows.unwrap_or(0));
            blocks[3] = log2(parameters.channels.unwrap_or(0));
        }
    }
    let share = match candidate {
        Candidate::Conv(candidate) => candidate.share(problem, isa, workers),
        Candidate::Linear(parameters) => {
            ConvCandidate::ImplicitGemm(*parameters).share(problem, isa, workers)
        }
    };
    let share = share.map_or([0.0; 2], |share| [log2(share.tasks), log2(share.values)]);
    let cost = algorithm.estimated_cost(problem, isa, workers).unwrap_or(1.0);
    let mut features = vec![(cost as f32).ln()];
    features.extend(ConvAlgorithm::ALL.map(|other| f32::from(u8::from(other == algorithm))));
    features.extend(share);
    features.extend(product);
    features.extend(blocks);
    features
}

fn product_features(
    parameters: &GemmParameters,
    shape: &GemmShape,
    isa: Isa,
    workers: usize,
) -> [f32; PRODUCT_FEATURES] {
    let (limits, cut) = (parameters.limits, parameters.cut(isa, shape, workers));
    [
        log2(limits.depth),
        log2(limits.rows),
        log2(limits.panel_values),
        log2(limits.tiles_per_worker),
        f32::from(u8::from(parameters.width == PanelWidth::OneVector)),
        f32::from(u8::from(cut.copies_rows())),
        log2(cut.part_depth()),
        log2(cut.tile_rows()),
        log2(cut.part_depth() * cut.tile_columns()),
        log2(cut.tile_rows() * cut.tile_columns()),
    ]
}
