//! What the server counts of itself: requests by model and outcome, and what the engine runs.

mod exposition;
mod histogram;
mod model;
pub(crate) mod names;
mod process;
mod recorder;
mod registry;

pub(crate) use exposition::{Exposition, NANOSECONDS, ROWS};
pub(crate) use model::{ModelCounts, ModelMetrics, Outcome};
pub(crate) use process::Process;
pub(crate) use registry::{Metrics, UNKNOWN};
