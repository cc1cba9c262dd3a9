//! What is wrong with a message.

/// The most characters of the sender's own words that an error repeats at a time.
const MAX_QUOTED_CHARACTERS: usize = 100;

/// Why a message cannot be understood; the sender is to blame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The whole of it is not what it should be.
    #[error("{0}")]
    Malformed(String),
    /// One tensor is not what it should be.
    #[error("tensor '{}': {problem}", clipped(name))]
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

impl ProtocolError {
    /// What is wrong with the tensor of this name.
    pub(crate) fn tensor(name: &str, problem: String) -> Self {
        Self::Tensor { name: name.to_owned(), problem }
    }
}

impl From<String> for ProtocolError {
    fn from(problem: String) -> Self {
        Self::Malformed(problem)
    }
}

/// The beginning of what the sender wrote, short enough to be repeated in an error.
pub(crate) fn clipped(text: &str) -> &str {
    match text.char_indices().nth(MAX_QUOTED_CHARACTERS) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
