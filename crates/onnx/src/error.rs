//! What can go wrong when a model file is read.

use std::fmt;
use std::path::PathBuf;

use weft_ir::{GraphError, OperatorError};

/// A model that cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum LoadError {
    #[error("'{}': {problem}", path.display())]
    InFile { path: PathBuf, problem: Box<LoadError> },
    #[error("cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    #[error("is not an ONNX file: {0}")]
    Malformed(#[from] prost::DecodeError),
    #[error("{0}")]
    Version(String),
    #[error("{}", Listing(.0))]
    Unsupported(Vec<UnsupportedOperator>),
    #[error("node '{node}' ({operator}): {problem}")]
    Node { node: String, operator: String, problem: Box<NodeProblem> },
    #[error("tensor '{name}': {problem}")]
    Tensor { name: String, problem: String },
    #[error("graph '{graph}': {problem}")]
    Graph { graph: String, problem: Box<GraphError> },
    #[error("{0}")]
    Limit(String),
}

/// Why a node cannot be built.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum NodeProblem {
    #[error("{0}")]
    Operator(#[from] OperatorError),
    #[error("attribute '{name}': {problem}")]
    Attribute { name: String, problem: String },
    #[error("{0}")]
    Body(Box<LoadError>),
    #[error("{0}")]
    Other(String),
}

/// An operator that Weft does not have, and the nodes that ask for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedOperator {
    /// The operator's domain; empty for the standard one.
    pub domain: String,
    /// The operator's name in that domain.
    pub operator: String,
    /// The names of the nodes, in order.
    pub nodes: Vec<String>,
}

impl LoadError {
    /// The operators that are missing, where that is what is wrong.
    pub fn unsupported(&self) -> Option<&[UnsupportedOperator]> {
        match self {
            LoadError::InFile { problem, .. } => problem.unsupported(),
            LoadError::Unsupported(operators) => Some(operators),
            _ => None,
        }
    }

    /// The error without the file that it is about.
    pub fn problem(&self) -> &LoadError {
        match self {
            LoadError::InFile { problem, .. } => problem.problem(),
            other => other,
        }
    }
}

/// How many nodes a message names before it only counts them.
const NODES_NAMED: usize = 2;

struct Listing<'a>(&'a [UnsupportedOperator]);

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => f.write_str("1 operator is not supported: ")?,
            count => write!(f, "{count} operators are not supported: ")?,
        }
        for (index, entry) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            if !entry.domain.is_empty() {
                write!(f, "{}.", entry.domain)?;
            }
            let noun = if entry.nodes.len() == 1 { "node" } else { "nodes" };
            let named: Vec<String> =
                entry.nodes.iter().take(NODES_NAMED).map(|node| format!("'{node}'")).collect();
            write!(f, "{} ({noun} {}", entry.operator, named.join(", "))?;
            if entry.nodes.len() > NODES_NAMED {
                write!(f, ", and {} more", entry.nodes.len() - NODES_NAMED)?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_missing_operators_stand_in_one_message() {
        let entry = |domain: &str, operator: &str, nodes: &[&str]| UnsupportedOperator {
            domain: domain.into(),
            operator: operator.into(),
            nodes: nodes.iter().map(|node| node.to_string()).collect(),
        };
        let error = LoadError::Unsupported(vec![
            entry("", "Foo", &["a"]),
            entry("my", "Bar", &["b", "c", "d", "e"]),
        ]);
        assert_eq!(
            error.to_string(),
            "2 operators are not supported: Foo (node 'a'), my.Bar (nodes 'b', 'c', and 2 more)"
        );
    }
}
