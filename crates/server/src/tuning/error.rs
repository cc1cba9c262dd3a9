//! Why kernels are not tuned.

use weft_device::DeviceError;
use weft_ir::GraphError;
use weft_tuner::database::DatabaseError;
use weft_tuner::session::TuneError;

use crate::error::ServeError;

/// Why kernels are not tuned, or not any further.
#[derive(Debug, thiserror::Error)]
pub enum TuningError {
    /// Another session is not over.
    #[error("tuning is under way")]
    UnderWay,
    /// The request cannot be understood.
    #[error("{0}")]
    WrongRequest(String),
    /// Nobody serves such a model.
    #[error("no model '{0}' is served")]
    UnknownModel(String),
    /// No model is on the device.
    #[error("nothing to tune: no model is served")]
    NothingServed,
    /// Every operator of the models has one kernel.
    #[error("nothing to tune: the models have no operators with several candidates")]
    NothingToTune,
    /// A trial would hold up a model for longer than it can wait.
    #[error(
        "a trial takes at least {least_ms} ms, and the objective of '{model}' is {objective_ms} ms: \
         trials would break it"
    )]
    NoRoom {
        /// The one with the tightest objective.
        model: String,
        /// From arrival to answer.
        objective_ms: f64,
        /// What a trial takes at least.
        least_ms: f64,
    },
    /// The tuning database cannot be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// What is served could not be changed.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The device cannot do it.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A model has no such shapes.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The session has ended.
    #[error(transparent)]
    Session(#[from] TuneError),
    /// There is no thread for it.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// Something in it is broken.
    #[error("the session has ended by itself: {0}")]
    Broken(String),
}
