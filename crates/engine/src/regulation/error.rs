//! Why a mix is not regulated.

use weft_device::DeviceError;
use weft_scheduler::MAX_UNITS;
use weft_scheduler::regulate::MixError;

/// Why a mix is not regulated.
#[derive(Debug, thiserror::Error)]
pub enum RegulationError {
    /// The device could not do what it was asked.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// What was timed is no mix.
    #[error(transparent)]
    Mix(#[from] MixError),
    /// Schedules share out more units than they can name.
    #[error("a mix has at most {MAX_UNITS} units, and not {0}")]
    Units(usize),
    /// A model's results in the mix are not its results alone.
    #[error("{model} is off by {error:.1e} in the mix")]
    Results {
        /// What it is called.
        model: String,
        /// Relative to its results alone; no number where one of them is none, or they cannot be compared.
        error: f64,
    },
    /// The session was ended before any schedule was run.
    #[error("no schedule was run within the budget")]
    NothingRun,
}
