//! One way to compute an operator.

use std::fmt;

use crate::conv::ConvCandidate;
use crate::gemm::GemmParameters;

/// A kernel with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Candidate {
    Conv(ConvCandidate),
    Linear(GemmParameters),
}

impl fmt::Display for Candidate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conv(candidate) => candidate.fmt(formatter),
            Self::Linear(parameters) => write!(formatter, "{LINEAR}{parameters}"),
        }
    }
}

/// What the names of candidates for products with a constant matrix begin with.
const LINEAR: &str = "gemm ";

impl Candidate {
    /// The parameters of a product with a constant matrix, by the name of the candidate.
    pub(crate) fn linear_named(name: &str) -> Option<GemmParameters> {
        GemmParameters::named(name.strip_prefix(LINEAR)?)
    }
}
