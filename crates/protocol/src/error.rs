//! What is wrong with a message.

/// Why a message cannot be understood; the sender is to blame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The whole of it is not what it should be.
    #[error("{0}")]
    Malformed(String),
    /// One tensor is not what it should be.
    #[error("tensor '{name}': {problem}")]
    Tensor {
        /// As the message calls it.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// It asks for something that is not offered.
    #[error("{0} is not supported")]
    Unsupported(String),
}
