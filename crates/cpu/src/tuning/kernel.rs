//! A candidate with weights, ready to run.

use std::sync::Arc;

use super::candidate::Candidate;
use super::fused_operator::{FusedOperator, Product};
use crate::conv::{ConvWeights, PackedConv};
use crate::gemm::{Linear, PackedB, WeightMatrix, WeightOrder};
use crate::{Isa, SharedOutput, Worker};

/// A kernel with its weights packed.
pub(super) enum PreparedKernel {
    Conv(ConvWeights, PackedConv),
    Linear(Linear),
}

impl PreparedKernel {
    /// Packs the weights: those of a convolution as `[channels_out, channels_in / group, height, width]`, those of another
    /// product row by row. Fails with the reason where the candidate is not one of the operator.
    pub(super) fn new(
        operator: &FusedOperator,
        candidate: &Candidate,
        weights: &[f32],
        bias: Option<&[f32]>,
        isa: Isa,
    ) -> Result<Self, String> {
        let activation = operator.activation;
        match (operator.product, candidate) {
            (Product::Conv(problem), Candidate::Conv(candidate)) => {
                let packed = ConvWeights::pack(candidate, &problem, weights, isa);
                let conv = packed.and_then(|weights| {
                    let conv = PackedConv::new(candidate, &problem, &weights, bias, activation)?;
                    Ok(Self::Conv(weights, conv))
                });
                conv.map_err(|error| error.to_string())
            }
            (Product::Linear { rows, depth, columns }, Candidate::Linear(parameters)) => {
                let order = WeightOrder::KByN;
                let matrix = WeightMatrix { data: weights, depth, columns, order };
                let matrix = PackedB::pack(isa, parameters.width, &matrix)
                    .map_err(|error| error.to_string())?;
                Ok(Self::Linear(Linear {
                    matrix: Arc::new(matrix),
                    limits: parameters.limits,
                    rows,
                    bias: bias.map(<[f32]>::to_vec),
                    activation,
                }))
            }
            _ => Err(format!("'{candidate}' does not compute '{}'", operator.product)),
        }
    }

    /// The packed weights, as they lie in memory.
    pub(super) fn weights(&self) -> Vec<&[f32]> {
        match self {
            Self::Conv(weights, _) => weights.values(),
            Self::Linear(linear) => vec![linear.matrix.data()],
        }
    }

    /// Computes the operator.
    ///
    /// # Safety
    ///
    /// All workers of the run make the same call, and nothing else accesses the output until all have returned.
    pub(super) unsafe fn run(
        &self,
        worker: &Worker,
        input: &[f32],
        residual: Option<&[f32]>,
        output: SharedOutput<f32>,
    ) {
        // SAFETY: the caller's promise is the same.
        unsafe {
            match self {
                Self::Conv(_, conv) => conv.run(worker, input, residual, output),
                Self::Linear(linear) => linear.run(worker, input, residual, output),
            }
        }
    }
}
