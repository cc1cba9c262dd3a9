//! Who wants to see what an engine does.

use std::time::{Duration, Instant};

use weft_scheduler::UnitMask;

use crate::model::ModelKey;

/// A batch that has run.
#[derive(Clone, Copy, Debug)]
pub struct LaunchRecord {
    /// What ran.
    pub model: ModelKey,
    /// Where.
    pub units: UnitMask,
    /// Entries of the batch; none where all its requests were cancelled.
    pub rows: u32,
    /// When it began.
    pub started: Instant,
    /// How long it took.
    pub took: Duration,
    /// How long it was expected to take.
    pub expected: Duration,
}

/// Told what happens, from the threads it happens on, which should not be kept.
pub trait Observer: Send + Sync {
    /// A batch has run.
    fn launch_ended(&self, launch: &LaunchRecord) {
        let _ = launch;
    }

    /// A partition could not be prepared, and what served before goes on.
    fn preparation_failed(&self, why: &str) {
        let _ = why;
    }
}

/// Sees nothing.
pub struct Unobserved;

impl Observer for Unobserved {}
