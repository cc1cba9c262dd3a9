//! Who wants to see what an engine does.

use std::time::{Duration, Instant};

use weft_scheduler::UnitMask;

use crate::mixing::MixOutcome;
use crate::model::ModelKey;

/// A batch that has run.
#[derive(Clone, Copy, Debug)]
pub struct LaunchRecord {
    /// What ran; in a group, the model of the first request.
    pub model: ModelKey,
    /// The partition's number, among those of its layer.
    pub partition: u32,
    /// It ran while others left its units idle.
    pub is_background: bool,
    /// Where.
    pub units: UnitMask,
    /// Entries of the batch; none where all its requests were cancelled.
    pub rows: u32,
    /// Models whose requests were in it: several only in a group, or in a mix.
    pub tenants: u32,
    /// Entries of a group ran in one launch, not one after another.
    pub is_fused: bool,
    /// Batches of different models ran together, by a schedule.
    pub is_mixed: bool,
    /// When it began.
    pub started: Instant,
    /// How long it took, without the time for which it was paused.
    pub took: Duration,
    /// How long it was paused for others that were due first.
    pub paused: Duration,
    /// How long it was expected to take.
    pub expected: Duration,
}

/// Told what happens, from the threads it happens on, which should not be kept.
pub trait Observer: Send + Sync {
    /// A batch has run.
    fn launch_ended(&self, launch: &LaunchRecord) {
        let _ = launch;
    }

    /// So many entries of a batch that has run were a model's; told once for each model that was in it.
    fn took_part(&self, model: ModelKey, rows: u32, launch: &LaunchRecord) {
        let _ = (model, rows, launch);
    }

    /// Partitions have got their units: from now on these are what serves in their layer.
    fn repartitioned(&self, partitions: &[UnitMask]) {
        let _ = partitions;
    }

    /// A member of a group is served apart from the others for so long, since it holds them up.
    fn evicted(&self, model: ModelKey, length: Duration) {
        let _ = (model, length);
    }

    /// Batches of these models that come together, each of a size, were regulated.
    fn regulated(&self, models: &[(ModelKey, u32)], outcome: &MixOutcome) {
        let _ = (models, outcome);
    }

    /// A partition could not be prepared, and what served before goes on.
    fn preparation_failed(&self, why: &str) {
        let _ = why;
    }
}

/// Sees nothing.
pub struct Unobserved;

impl Observer for Unobserved {}
