//! What became of a mix: the schedule that was found, beside other ways to run it.

use std::time::Duration;

use weft_scheduler::regulate::{MixSchedule, Timeline};

/// How the models of a mix share the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Each on the whole device, one after another.
    InTurns,
    /// All at once on the whole device.
    Streams,
    /// Each on as many units as the others.
    EvenPartitions,
    /// By the schedule that was found.
    Regulated,
}

impl Way {
    pub(crate) const ALL: [Self; 4] =
        [Self::InTurns, Self::Streams, Self::EvenPartitions, Self::Regulated];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::InTurns => "one after another",
            Self::Streams => "streams",
            Self::EvenPartitions => "even partitions",
            Self::Regulated => "regulated",
        }
    }
}

/// What was found.
pub(crate) struct Outcome {
    pub(crate) schedule: MixSchedule,
    /// As predicted, before it was run.
    pub(crate) timeline: Timeline,
    /// The prediction with what runs before it had taught, in microseconds.
    pub(crate) predicted_us: f64,
    /// Of each way, in microseconds: medians of rounds in turns.
    pub(crate) times_us: [f64; 4],
    /// How long timing the steps took.
    pub(crate) profiling: Duration,
    /// How long after the search began the best had come to a time, in microseconds.
    pub(crate) history: Vec<(Duration, f64)>,
    /// Schedules that were predicted, and those that were run.
    pub(crate) evaluated: usize,
    pub(crate) measured: usize,
}

impl Outcome {
    pub(crate) fn time_us(&self, way: Way) -> f64 {
        self.times_us[way as usize]
    }

    /// When the search had come to within two percent of what it found in the end.
    pub(crate) fn settled(&self) -> Duration {
        let last = self.history.last().map_or(f64::INFINITY, |&(_, us)| us);
        let close = self.history.iter().find(|&&(_, us)| us <= 1.02 * last);
        close.map_or(Duration::ZERO, |&(at, _)| at)
    }
}
