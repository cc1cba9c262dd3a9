//! Why a request gets no answer, or a server does not start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use weft_engine::InferError;
use weft_protocol::ProtocolError;

use crate::shared_memory::RegionError;
use crate::spans::ExportError;

/// Why a request gets no answer.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// There is no such endpoint.
    #[error("there is nothing at {0}")]
    UnknownPath(String),
    /// The endpoint is there, and is asked for in another way.
    #[error("{path} takes {allowed}")]
    WrongMethod {
        /// The endpoint.
        path: String,
        /// How it is asked for.
        allowed: &'static str,
    },
    /// There is no such model.
    #[error("there is no model '{0}'")]
    UnknownModel(String),
    /// The model is there, and has no such version.
    #[error("model '{model}' has no version '{version}'")]
    UnknownVersion {
        /// The model.
        model: String,
        /// As it was asked for.
        version: String,
    },
    /// The model is there and is not loaded; being asked for brings it back.
    #[error("model '{0}' is asleep")]
    Asleep(String),
    /// The model is there and cannot be served.
    #[error("model '{model}' is not served: {reason}")]
    Unavailable {
        /// The model.
        model: String,
        /// Why not.
        reason: String,
    },
    /// The message cannot be understood.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The inputs or outputs are not those of the model.
    #[error("model '{model}': {problem}")]
    Mismatch {
        /// The model.
        model: String,
        /// What does not fit.
        problem: String,
    },
    /// Shared memory cannot be registered or used.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The engine did not answer.
    #[error(transparent)]
    Engine(#[from] InferError),
    /// The body is compressed in a way that is not known.
    #[error("the content encoding '{0}' is not one of gzip and deflate")]
    UnknownEncoding(String),
    /// The body is longer than is read.
    #[error("the body exceeds the limit of {limit_bytes} bytes")]
    BodyTooLarge {
        /// What is read at most.
        limit_bytes: usize,
    },
    /// The body did not arrive in time.
    #[error("the body did not arrive within {seconds} s")]
    BodyTooSlow {
        /// How long was waited.
        seconds: u64,
    },
    /// The connection broke while the body was read.
    #[error("the body ended early")]
    BodyBroken,
    /// As many requests as are taken on wait for their answers.
    #[error("{limit} requests are in flight, and no more are taken on")]
    TooManyRequests {
        /// How many are taken on.
        limit: usize,
    },
    /// No key was sent, and requests without one are not answered.
    #[error("a key is needed: send it as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'")]
    KeyMissing,
    /// The key is nobody's.
    #[error("the key is not known")]
    KeyUnknown,
    /// What was asked for is for administrators.
    #[error("this is administration, which takes the key of an administrator")]
    NotAdministrator,
    /// The tenant has sent as many requests as it may.
    #[error("the tenant's limit is reached: {rate_per_s} requests per second, {burst} at once")]
    OverRate {
        /// The most in the long run.
        rate_per_s: f64,
        /// The most at once.
        burst: u32,
        /// Until the next one is let through.
        wait: Duration,
    },
    /// The tenant has as many requests in flight as it may.
    #[error("the tenant's limit is reached: {limit} requests in flight")]
    OverConcurrency {
        /// How many it may have.
        limit: u32,
    },
    /// The server ends.
    #[error("the server is stopping")]
    Stopping,
}

impl ServeError {
    /// Memory of a GPU is not shared with clients.
    pub(crate) fn no_cuda_shared_memory() -> Self {
        ProtocolError::Unsupported("shared memory of a GPU".into()).into()
    }

    /// Settings that no client can change.
    pub(crate) fn no_such_settings(what: &str) -> Self {
        ProtocolError::Unsupported(format!("changing {what} settings over the network")).into()
    }
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error("TLS: {}: {problem}", file.display())]
    Tls {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Spans cannot be sent.
    #[error(transparent)]
    Spans(#[from] ExportError),
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}
