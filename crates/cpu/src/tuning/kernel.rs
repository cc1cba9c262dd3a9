//! A candidate with weights, ready to run.

use super::candidate::Candidate;
use super::fused_operator::{FusedOperator, Product};
use super::packed_weights::PackedWeights;
use crate::conv::PackedConv;
use crate::gemm::Linear;
use crate::{SharedOutput, Worker};

/// A kernel with its weights.
pub(super) enum PreparedKernel {
    Conv(PackedConv),
    Linear(Linear),
}

impl PreparedKernel {
    /// Binds weights that were packed for the candidate. Fails with the reason where they, or the candidate, are not for the
    /// operator.
    pub(super) fn new(
        operator: &FusedOperator,
        candidate: &Candidate,
        weights: &PackedWeights,
        bias: Option<&[f32]>,
    ) -> Result<Self, String> {
        let activation = operator.activation;
        match (operator.product, candidate, weights) {
            (Product::Conv(problem), Candidate::Conv(candidate), PackedWeights::Conv(weights)) => {
                PackedConv::new(candidate, &problem, weights, bias, activation)
                    .map(Self::Conv)
                    .map_err(|error| error.to_string())
            }
            (
                Product::Linear { rows, .. },
                Candidate::Linear(parameters),
                PackedWeights::Linear(matrix),
            ) => Ok(Self::Linear(Linear {
                matrix: matrix.clone(),
                limits: parameters.limits,
                rows,
                bias: bias.map(<[f32]>::to_vec),
                activation,
            })),
            _ => Err(format!("'{candidate}' does not compute '{}'", operator.product)),
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
                Self::Conv(conv) => conv.run(worker, input, residual, output),
                Self::Linear(linear) => linear.run(worker, input, residual, output),
            }
        }
    }
}
