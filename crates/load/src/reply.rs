//! What a server says to one request, whatever the protocol.

use std::borrow::Cow;
use std::fmt;

/// Where the outputs of a request are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputPlace {
    Answer,
    SharedMemory,
}

/// The outputs of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outputs<'a> {
    /// The elements of all, one after the other.
    Carried(Cow<'a, [u8]>),
    /// In shared memory, and so many bytes.
    Shared(usize),
}

/// What a server says to one request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply<'a> {
    /// With outputs.
    Answered(Outputs<'a>),
    /// Declined or given up because of load or a deadline.
    Refused(Rejection),
    /// Anything else, the connection's end included.
    Failed(Rejection),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// What it is counted under: few different ones.
    pub(crate) reason: String,
    /// The server's words; may be empty.
    pub(crate) message: String,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.message.is_empty() { "" } else { ": " };
        write!(f, "{}{separator}{}", self.reason, self.message)
    }
}

impl Reply<'_> {
    pub(crate) fn failed(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Reply::Failed(Rejection { reason: reason.into(), message: message.into() })
    }
}
