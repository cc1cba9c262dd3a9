//! A tuning session: candidates are compiled on all cores and timed on many partitions at once, until every operator has
//! its choice.

mod batch;
mod compile;
mod compile_queue;
mod finals;
mod interference;
mod learning;
mod measure;
mod measure_queue;
mod observer;
mod options;
mod outcome;
mod pipeline;
mod screening;
mod stop;
mod task;

pub use batch::{TaskCandidate, try_all};
pub use finals::{NOISE, SCALED_NOISE};
pub use observer::{Observer, Phase, Progress, Silent, TrialReport, TrialStage};
pub use options::{CompileBudget, Shard, Sharing, TuneOptions};
pub use outcome::{Choice, Outcome, Statistics};
pub use stop::Stop;
pub use task::{Known, Task};

use std::time::Instant;

use weft_device::{DeviceError, TunableDevice};

use crate::cost_model::TrainingRows;
use crate::search::SearchError;

/// Why a session ended without choices.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The device cannot be used any more.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// An operator has no candidates that can be searched.
    #[error("operator '{operator}': {source}")]
    Search {
        /// Which one.
        operator: String,
        /// What is wrong with its candidates.
        source: SearchError,
    },
    /// The device has no partition of the size.
    #[error("the device has no partition of exactly {size} cores or SMs to measure on")]
    NoPartition {
        /// The size that was asked for.
        size: usize,
    },
    /// More processes than partitions.
    #[error("{shares} processes cannot share {partitions} partitions")]
    TooManyShares {
        /// How many processes there are.
        shares: usize,
        /// How many partitions the device has for them.
        partitions: usize,
    },
    /// What was found could not be written down.
    #[error("{0}")]
    Observer(String),
}

/// What a session is to find.
#[derive(Clone, Copy)]
pub struct Assignment<'a> {
    /// The partitions that it tunes for have so many cores or SMs.
    pub size: usize,
    /// The operators.
    pub tasks: &'a [Task],
    /// What others took on the same platform, for the cost model to begin with.
    pub experience: &'a TrainingRows,
}

/// Which part of a session is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Part {
    /// All of it.
    #[default]
    All,
    /// Candidates are tried side by side, and nothing is chosen.
    Screening,
    /// What was screened before, as the tasks know it, is tried alone and chosen from.
    Finals,
}

/// Finds the fastest candidate of every task.
pub fn tune(
    device: &dyn TunableDevice,
    assignment: Assignment<'_>,
    options: &TuneOptions,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Outcome, TuneError> {
    let start = Instant::now();
    let screened = match options.part {
        Part::Finals => screening::known(device, assignment, options)?,
        Part::All | Part::Screening => {
            screening::screen(device, assignment, options, observer, stop)?
        }
    };
    let screening_time = start.elapsed();
    let choices = match options.part {
        Part::Screening => vec![None; assignment.tasks.len()],
        Part::All | Part::Finals => {
            finals::decide(device, assignment, &screened, options, observer, stop)?
        }
    };
    Ok(Outcome {
        choices,
        statistics: Statistics {
            total_time: start.elapsed(),
            screening_time,
            ..screened.statistics
        },
    })
}
