//! Real time as the scheduler counts it.

use std::time::{Duration, Instant};

use weft_scheduler::{Span, Time};

/// Counts from when it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }

    pub(crate) fn now(self) -> Time {
        Time::START + span(self.start.elapsed())
    }

    /// How long it is until an instant; nothing where it has passed.
    pub(crate) fn until(self, at: Time) -> Duration {
        Duration::from_nanos(at.since(self.now()).nanos())
    }
}

/// A duration as the scheduler has it.
pub(crate) fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
