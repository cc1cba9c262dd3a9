//! What became of a mix: the schedule that was found, beside other ways to run it.

use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use weft_scheduler::Span;
use weft_scheduler::regulate::{MixSchedule, Segment, Timeline};

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

/// What was found, for machines.
pub(crate) fn outcome_json(outcome: &Outcome) -> Json {
    let time = |way: Way| (way.name().replace(' ', "_"), json!(outcome.time_us(way)));
    let times: Map<String, Json> = Way::ALL.into_iter().map(time).collect();
    let segment = |(segment, (begin, end)): (&Segment, &(Span, Span))| {
        json!({
            "model": segment.model,
            "first_step": segment.steps.start,
            "end_step": segment.steps.end,
            "units": segment.units.iter().collect::<Vec<_>>(),
            "begin_us": begin.us(),
            "end_us": end.us(),
        })
    };
    let segments = outcome.schedule.segments.iter().zip(&outcome.timeline.segments).map(segment);
    let history = outcome.history.iter().map(|(at, us)| json!([at.as_secs_f64(), us]));
    json!({
        "times_us": times,
        "predicted_us": outcome.predicted_us,
        "idle_unit_us": outcome.timeline.idle_unit_us,
        "evaluated": outcome.evaluated,
        "measured": outcome.measured,
        "profiling_s": outcome.profiling.as_secs_f64(),
        "settled_s": outcome.settled().as_secs_f64(),
        "segments": segments.collect::<Vec<_>>(),
        "history": history.collect::<Vec<_>>(),
    })
}
