//! An operator whose kernels have parameters, with all that they are chosen by.

use std::fmt;

use weft_device::OperatorKey;

use super::candidate::Candidate;
use crate::conv::{ConvCandidate, ConvProblem};
use crate::gemm::{GemmParameters, GemmShape};
use crate::{Activation, Isa};

/// A product at fixed shapes, and what is fused into it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FusedOperator {
    pub(crate) product: Product,
    pub(crate) has_bias: bool,
    pub(crate) has_residual: bool,
    pub(crate) activation: Activation,
}

/// What is multiplied with constant weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    /// An image, channels last.
    Conv(ConvProblem),
    /// A matrix of `rows` by `depth`.
    Linear { rows: usize, depth: usize, columns: usize },
}

impl Product {
    /// A product with a constant matrix as matrix multiplication sees it.
    pub(super) fn linear_shape(rows: usize, depth: usize, columns: usize) -> GemmShape {
        GemmShape { rows, depth, columns, stride: Some(depth) }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Linear { rows, depth, columns } => {
                write!(formatter, "linear {rows}x{depth} -> {columns}")
            }
            Self::Conv(problem) => {
                let ConvProblem { batch, height, width, channels_in, channels_out, .. } = problem;
                write!(formatter, "conv {batch}x{height}x{width}x{channels_in} -> {channels_out}")?;
                write!(formatter, ", {}x{}", problem.kernel[0], problem.kernel[1])?;
                write!(formatter, ", stride {}", pair(problem.strides))?;
                if problem.pads_begin == problem.pads_end {
                    write!(formatter, ", pad {}", pair(problem.pads_begin))?;
                } else {
                    let (begin, end) = (pair(problem.pads_begin), pair(problem.pads_end));
                    write!(formatter, ", pad {begin} and {end}")?;
                }
                if problem.dilations != [1, 1] {
                    write!(formatter, ", dilation {}", pair(problem.dilations))?;
                }
                if problem.group != 1 {
                    write!(formatter, ", {} groups", problem.group)?;
                }
                Ok(())
            }
        }
    }
}

/// One number for both axes, or two where they differ.
fn pair([vertical, horizontal]: [usize; 2]) -> String {
    match vertical == horizontal {
        true => vertical.to_string(),
        false => format!("{vertical}x{horizontal}"),
    }
}

impl FusedOperator {
    /// What choices and measurements know it by.
    pub(crate) fn key(&self) -> OperatorKey {
        let mut operator = self.product.to_string();
        if self.has_bias {
            operator += ", bias";
        }
        if self.has_residual {
            operator += ", residual";
        }
        if self.activation != Activation::None {
            operator += &format!(", {}", self.activation);
        }
        OperatorKey { operator, precision: "f32".into() }
    }

    /// All ways to compute it that differ on so many cores, the one taken unasked first; none where it cannot be computed.
    pub(crate) fn candidates(&self, isa: Isa, workers: usize) -> Vec<Candidate> {
        match self.product {
            Product::Conv(problem) => ConvCandidate::candidates(&problem, isa, workers)
                .unwrap_or_default()
                .into_iter()
                .map(Candidate::Conv)
                .collect(),
            Product::Linear { rows, depth, columns } => {
                let shape = Product::linear_shape(rows, depth, columns);
                let candidates = GemmParameters::candidates(isa, &shape, workers);
                candidates.into_iter().map(Candidate::Linear).collect()
            }
        }
    }
}
