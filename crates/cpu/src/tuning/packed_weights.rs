//! Weights in the form that a candidate reads.

use std::sync::Arc;

use super::candidate::Candidate;
use super::fused_operator::{FusedOperator, Product};
use crate::Isa;
use crate::conv::ConvWeights;
use crate::gemm::{PackedB, WeightMatrix, WeightOrder};

/// Packed weights; a clone shares them.
#[derive(Clone)]
pub(super) enum PackedWeights {
    Conv(ConvWeights),
    Linear(Arc<PackedB>),
}

impl PackedWeights {
    /// Names the form: candidates of an operator with the same name read the same weights.
    pub(super) fn form(operator: &FusedOperator, candidate: &Candidate, isa: Isa) -> String {
        match (operator.product, candidate) {
            (Product::Conv(problem), Candidate::Conv(candidate)) => {
                candidate.packing(&problem, isa)
            }
            (_, Candidate::Linear(parameters)) => format!("{:?}", parameters.width),
            (_, Candidate::Conv(candidate)) => candidate.to_string(),
        }
    }

    /// Packs the weights: those of a convolution as `[channels_out, channels_in / group, height, width]`, those of another
    /// product row by row. Fails with the reason where the candidate is not one of the operator.
    pub(super) fn pack(
        operator: &FusedOperator,
        candidate: &Candidate,
        weights: &[f32],
        isa: Isa,
    ) -> Result<Self, String> {
        match (operator.product, candidate) {
            (Product::Conv(problem), Candidate::Conv(candidate)) => {
                ConvWeights::pack(candidate, &problem, weights, isa)
                    .map(Self::Conv)
                    .map_err(|error| error.to_string())
            }
            (Product::Linear { depth, columns, .. }, Candidate::Linear(parameters)) => {
                let order = WeightOrder::KByN;
                let matrix = WeightMatrix { data: weights, depth, columns, order };
                PackedB::pack(isa, parameters.width, &matrix)
                    .map(|matrix| Self::Linear(Arc::new(matrix)))
                    .map_err(|error| error.to_string())
            }
            _ => Err(format!("'{candidate}' does not compute '{}'", operator.product)),
        }
    }

    /// The values, as they lie in memory.
    pub(super) fn values(&self) -> Vec<&[f32]> {
        match self {
            Self::Conv(weights) => weights.values(),
            Self::Linear(matrix) => vec![matrix.data()],
        }
    }
}
