//! Why a model of the zoo could not be built.

use weft_ir::{GraphError, OperatorError};

/// A model of the zoo that cannot be built as asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ZooError {
    #[error("the zoo has no model '{name}'; it has {}", crate::names().join(", "))]
    UnknownModel { name: String },
    #[error("model '{model}' takes {allowed}, not of side {given}")]
    ImageSide { model: &'static str, allowed: String, given: usize },
    #[error("model '{model}' takes sequences of at most {longest}, not of {given}")]
    Sequence { model: &'static str, longest: usize, given: usize },
    #[error("inputs of model '{model}': {source}")]
    Inputs { model: &'static str, source: OperatorError },
    #[error("model '{model}': {source}")]
    Graph { model: &'static str, source: GraphError },
}
