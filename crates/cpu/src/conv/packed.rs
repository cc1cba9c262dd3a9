//! Owns a convolution of any algorithm behind one interface.

use std::sync::Arc;

use super::candidate::ConvCandidate;
use super::depthwise::{DepthwiseConv, DepthwiseWeights};
use super::implicit_gemm::{ImplicitGemmConv, ImplicitGemmWeights};
use super::problem::{ConvError, ConvProblem};
use super::winograd::{WinogradConv, WinogradWeights};
use crate::gemm::GemmParameters;
use crate::{Activation, Isa, SharedOutput, Worker};

/// Weights packed for one algorithm and one instruction set; images of any size can share them.
#[derive(Debug, Clone)]
pub enum ConvWeights {
    /// For [`ConvCandidate::Depthwise`].
    Depthwise(Arc<DepthwiseWeights>),
    /// For [`ConvCandidate::ImplicitGemm`].
    ImplicitGemm(Arc<ImplicitGemmWeights>),
    /// For [`ConvCandidate::Winograd`].
    Winograd(Arc<WinogradWeights>),
}

impl ConvWeights {
    /// Packs `weights`, given as `[channels_out, channels_in / group, height, width]`.
    pub fn pack(
        candidate: &ConvCandidate,
        problem: &ConvProblem,
        weights: &[f32],
        isa: Isa,
    ) -> Result<Self, ConvError> {
        problem.geometry()?;
        let algorithm = candidate.algorithm();
        if !algorithm.supports(problem) {
            return Err(ConvError::Unsupported { algorithm: algorithm.name() });
        }
        let ConvProblem { channels_in, channels_out, kernel, .. } = *problem;
        Ok(match *candidate {
            ConvCandidate::Depthwise(_) => {
                Self::Depthwise(Arc::new(DepthwiseWeights::pack(channels_in, kernel, weights)?))
            }
            ConvCandidate::ImplicitGemm(GemmParameters { width, .. }) => {
                let packed = ImplicitGemmWeights::pack(isa, width, problem, weights)?;
                Self::ImplicitGemm(Arc::new(packed))
            }
            ConvCandidate::Winograd(tile, parameters) => {
                let channels = [channels_in, channels_out];
                let packed = WinogradWeights::pack(isa, tile, parameters, channels, weights)?;
                Self::Winograd(Arc::new(packed))
            }
        })
    }

    /// All their values, as they lie in memory.
    pub(crate) fn values(&self) -> Vec<&[f32]> {
        match self {
            Self::Depthwise(weights) => weights.values().collect(),
            Self::ImplicitGemm(weights) => weights.values().collect(),
            Self::Winograd(weights) => weights.values().collect(),
        }
    }

    /// How much memory they take.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Depthwise(weights) => weights.bytes(),
            Self::ImplicitGemm(weights) => weights.bytes(),
            Self::Winograd(weights) => weights.bytes(),
        }
    }
}

/// A convolution of images of one size with packed weights.
#[derive(Debug)]
pub struct PackedConv {
    weight_bytes: usize,
    conv: AnyConv,
}

#[derive(Debug)]
enum AnyConv {
    Depthwise(DepthwiseConv),
    ImplicitGemm(ImplicitGemmConv),
    Winograd(WinogradConv),
}

impl PackedConv {
    /// Prepares the convolution; `weights` were packed for the candidate, and for a problem that differs in batch and image
    /// size at most.
    pub fn new(
        candidate: &ConvCandidate,
        problem: &ConvProblem,
        weights: &ConvWeights,
        bias: Option<&[f32]>,
        activation: Activation,
    ) -> Result<Self, ConvError> {
        let conv = match (*candidate, weights.clone()) {
            (ConvCandidate::Depthwise(parameters), ConvWeights::Depthwise(weights)) => {
                AnyConv::Depthwise(DepthwiseConv::new(
                    problem, weights, parameters, bias, activation,
                )?)
            }
            (ConvCandidate::ImplicitGemm(parameters), ConvWeights::ImplicitGemm(weights)) => {
                AnyConv::ImplicitGemm(ImplicitGemmConv::new(
                    problem,
                    weights,
                    parameters.limits,
                    bias,
                    activation,
                )?)
            }
            (ConvCandidate::Winograd(_, parameters), ConvWeights::Winograd(weights)) => {
                AnyConv::Winograd(WinogradConv::new(
                    problem, weights, parameters, bias, activation,
                )?)
            }
            _ => return Err(ConvError::Unsupported { algorithm: candidate.algorithm().name() }),
        };
        Ok(Self { weight_bytes: weights.bytes(), conv })
    }

    /// How many bytes the packed weights take.
    pub fn weight_bytes(&self) -> usize {
        self.weight_bytes
    }

    /// Computes `activation(convolution + bias + residual)`; images have their channels last.
    ///
    /// # Safety
    ///
    /// All workers of the run make the same call, and nothing else accesses the output until all have returned.
    ///
    /// # Panics
    ///
    /// If a slice has not the length that the problem asks for, or the worker has another instruction set than the
    /// weights were packed for.
    pub unsafe fn run(
        &self,
        worker: &Worker,
        input: &[f32],
        residual: Option<&[f32]>,
        output: SharedOutput<f32>,
    ) {
        // SAFETY: the caller's promise is the same.
        unsafe {
            match &self.conv {
                AnyConv::Depthwise(conv) => conv.run(worker, input, residual, output),
                AnyConv::ImplicitGemm(conv) => conv.run(worker, input, residual, output),
                AnyConv::Winograd(conv) => conv.run(worker, input, residual, output),
            }
        }
    }
}
