//! What can go wrong in an operator, a graph, or on the way from one to a device.

use crate::data_type::DataType;

/// An operator that cannot be built, inferred or evaluated as asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum OperatorError {
    #[error("operator {0} is not supported")]
    Unsupported(String),
    #[error("attribute '{name}': {problem}")]
    Attribute { name: String, problem: String },
    #[error("input {0} is missing")]
    MissingInput(usize),
    #[error("input {index} must be {expected}")]
    WrongKind { index: usize, expected: &'static str },
    #[error("element type {given} where {expected} is expected")]
    WrongType { expected: String, given: DataType },
    #[error("shapes {left:?} and {right:?} do not fit together")]
    Shapes { left: Vec<usize>, right: Vec<usize> },
    #[error("shape {shape:?} does not hold {given} elements")]
    ElementCount { shape: Vec<usize>, given: usize },
    #[error("axis {axis} is outside rank {rank}")]
    Axis { axis: i64, rank: usize },
    #[error(
        "a {data_type} tensor of shape {shape:?} is larger than the limit of {} bytes",
        crate::MAX_TENSOR_BYTES
    )]
    TooLarge { shape: Vec<usize>, data_type: DataType },
    #[error("{0}")]
    Invalid(String),
}

/// A graph that is malformed, or a node of it that failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum GraphError {
    #[error("node '{node}' ({operator}): {source}")]
    Node { node: String, operator: String, source: OperatorError },
    #[error("the graph has a cycle through node '{0}'")]
    Cycle(String),
    #[error("value '{0}' is used but nothing produces it")]
    Undefined(String),
    #[error("value '{0}' is produced twice")]
    Redefined(String),
    #[error("{0}")]
    Input(String),
    #[error("{0}")]
    Limit(String),
}
