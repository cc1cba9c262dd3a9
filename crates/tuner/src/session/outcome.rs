//! What a session found.

use std::time::Duration;

use weft_device::Trial;

/// The candidate of one task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Its place in the operator's list.
    pub candidate: usize,
    /// What one run takes, measured alone on a partition of the size.
    pub time: Duration,
    /// What one run of the untuned candidate takes, measured the same way.
    pub untuned_time: Duration,
    /// How many candidates were tried.
    pub trials: usize,
}

impl Choice {
    /// How many times as fast as the untuned candidate it is.
    pub fn gain(&self) -> f64 {
        self.untuned_time.as_secs_f64() / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// All that a session found.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// For each task in order; `None` where the session ended before there was anything to choose.
    pub choices: Vec<Option<Choice>>,
    /// How it went.
    pub statistics: Statistics,
}

/// How a session went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Candidates tried while others were, finals not counted.
    pub trials: usize,
    /// Of these, those that were tried again because something interfered.
    pub repeated: usize,
    /// Of these, those with wrong results.
    pub wrong: usize,
    /// Of these, those that could not be compiled or run.
    pub failed: usize,
    /// How many were timed at once.
    pub benches: usize,
    /// How long candidates were tried side by side.
    pub screening_time: Duration,
    /// The core time that compiling took.
    pub compile_time: Duration,
    /// The whole session.
    pub total_time: Duration,
}

impl Statistics {
    /// Counts a trial.
    pub(super) fn note(&mut self, trial: &Trial) {
        self.trials += 1;
        self.wrong += usize::from(matches!(trial, Trial::Wrong { .. }));
        self.failed += usize::from(matches!(trial, Trial::Failed(_)));
    }
}
