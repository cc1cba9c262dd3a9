//! Regulation of a mix on a real device, piece by piece: its models are timed step by step, schedules are searched by what that
//! predicts, the best of them are run, and what runs best is changed further.

mod contest;
mod error;
mod found;
mod likeness;
mod median;
mod outcome;
mod regulated;
mod search;
mod segments;
mod session;
mod settling;
mod stopwatch;
mod subject;
mod timing;
mod written;

pub use error::RegulationError;
pub use likeness::likeness;
pub use outcome::{Outcome, Way};
pub use regulated::RegulatedMix;
pub use session::{Regulation, RegulationOptions};
pub use settling::Settling;
pub use subject::RegulatedModel;
pub use written::{StagesError, read_stages, write_stages, written_models};
