//! Time that is spent in pieces.

use std::time::{Duration, Instant};

/// Counts while it runs, and keeps what it has counted.
#[derive(Default)]
pub(super) struct Stopwatch {
    counted: Duration,
    began: Option<Instant>,
}

impl Stopwatch {
    pub(super) fn start(&mut self) {
        self.began.get_or_insert_with(Instant::now);
    }

    pub(super) fn stop(&mut self) {
        self.counted = self.spent();
        self.began = None;
    }

    /// All that was counted until now.
    pub(super) fn spent(&self) -> Duration {
        self.counted + self.began.map_or(Duration::ZERO, |began| began.elapsed())
    }
}
