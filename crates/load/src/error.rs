//! Why a load cannot be generated at all.

use std::io;

/// Why a load cannot be generated. What becomes of single requests while it runs is not an error but counted.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The server's address is not one.
    #[error("'{url}' is no address of a server: {problem}")]
    Address {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Nobody can be talked to there.
    #[error("cannot connect to {address}: {source}")]
    Connection {
        /// Host and port.
        address: String,
        /// What the operating system says.
        source: io::Error,
    },
    /// The server did not say what was asked, before the run.
    #[error("{what}: the server answered {answer}")]
    Server {
        /// What was asked for.
        what: String,
        /// Its status and what it says.
        answer: String,
    },
    /// Requests of a model cannot be made.
    #[error("model '{model}': {problem}")]
    Model {
        /// Its name.
        model: String,
        /// Why not.
        problem: String,
    },
    /// Tensors cannot travel through shared memory.
    #[error("shared memory: {problem}")]
    SharedMemory {
        /// Why not.
        problem: String,
    },
    /// More requests are due than are drawn beforehand.
    #[error("the loads make more than {limit} requests; make the run shorter or the rates lower")]
    TooManyRequests {
        /// The most that one run has.
        limit: usize,
    },
    /// The operating system gives no timer.
    #[error("there is no timer: {0}")]
    Timer(#[source] io::Error),
}
