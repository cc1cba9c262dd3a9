//! What can go wrong between a model and a device.

use weft_ir::GraphError;

/// A device that cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum DeviceError {
    #[error("model '{model}': {source}")]
    Model { model: String, source: Box<GraphError> },
    #[error("unit {unit} does not exist: the device has units {available}")]
    NoSuchUnit { unit: usize, available: String },
    #[error("a partition needs at least one unit")]
    NoUnits,
    #[error("input '{name}': {problem}")]
    Input { name: String, problem: String },
    #[error("model '{model}' was loaded onto another device")]
    ForeignModel { model: String },
    #[error("{0}")]
    Failed(String),
}
