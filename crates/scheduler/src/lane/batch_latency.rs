//! What a lane asks the latency function.

use super::mixing::MixLatency;
use crate::identity::{MixId, ModelId};
use crate::time::Span;

/// How long a batch of a model takes on the lane's partition. Members of a group have the same latencies.
pub trait BatchLatency {
    /// The predicted duration of a batch of one or more items.
    fn of(&self, model: ModelId, batch: u32) -> Span;

    /// The largest batch that the model may run at; at least 1. It bounds how long a request that comes just after a
    /// launch is blocked: a plan that puts a tight model beside a loose one limits the loose one's batches.
    fn largest_batch(&self, model: ModelId) -> u32;

    /// How far durations of the model stray from what is predicted: their standard deviation, as a share.
    fn spread(&self, _model: ModelId) -> f64 {
        0.0
    }

    /// How many standard deviations are kept in reserve for promises to the model's requests.
    fn certainty(&self, _model: ModelId) -> f64 {
        0.0
    }

    /// How long a mix takes; `None` where it is not ready on the lane's partition.
    fn of_mix(&self, _mix: MixId) -> Option<MixLatency> {
        None
    }
}
