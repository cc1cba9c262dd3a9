//! Where schedules of mixes are kept between runs of a server.

use std::time::Duration;

/// A schedule that was found for a mix, to be kept.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundSchedule {
    /// Its stages, as [`write_stages`](crate::regulation::write_stages) has them.
    pub stages: String,
    /// How long the mix takes by it.
    pub time: Duration,
    /// How long its models take one after another.
    pub in_turns: Duration,
}

/// Schedules that are known of mixes, by what of their models decides how long they take, as
/// [`likeness`](crate::regulation::likeness) has it, and by the number of units that are shared out.
pub trait KnownSchedules: Send + Sync {
    /// The stages that are known, as text.
    fn known(&self, likeness: &str, units: u32) -> Option<String>;

    /// Keeps what was found. That it cannot be kept is this one's own matter to tell.
    fn keep(&self, likeness: &str, units: u32, found: &FoundSchedule);
}

/// Knows nothing and keeps nothing.
pub struct NoSchedules;

impl KnownSchedules for NoSchedules {
    fn known(&self, _likeness: &str, _units: u32) -> Option<String> {
        None
    }

    fn keep(&self, _likeness: &str, _units: u32, _found: &FoundSchedule) {}
}
