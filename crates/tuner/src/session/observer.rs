//! Whoever watches a session: to write down what it finds, and to show how far it is.

use std::time::Duration;

use weft_device::Trial;

use super::outcome::Choice;

/// How a candidate was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialStage {
    /// Beside others, on a partition that may be smaller than the one tuned for.
    Screened,
    /// By itself, on a partition of the size that is tuned for.
    Alone,
}

/// What came of one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialReport {
    /// The task's place in the session's list.
    pub task: usize,
    /// The candidate's place in the operator's list.
    pub candidate: usize,
    /// How it was tried.
    pub stage: TrialStage,
    /// The bench that tried it.
    pub bench: usize,
    /// What came of it.
    pub trial: Trial,
}

/// What a session is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Candidates are tried side by side.
    Screening,
    /// Those that are left are tried alone.
    Finals,
}

/// How far a session is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What it is at.
    pub phase: Phase,
    /// Trials of this phase that are done.
    pub done: usize,
    /// Trials of this phase that are expected in all.
    pub expected: usize,
    /// The time of all tasks' best candidates so far, as often as the models compute them.
    pub best_time: Duration,
    /// The same of the untuned candidates.
    pub untuned_time: Duration,
}

/// Watches a session. Calls come from many threads; an error ends the session.
pub trait Observer: Sync {
    /// A candidate is about to be run, which may be the last thing that this process does; `false` where it must not be.
    fn starting(&self, task: usize, candidate: usize) -> Result<bool, String>;

    /// A candidate was tried.
    fn tried(&self, report: &TrialReport) -> Result<(), String>;

    /// A task's candidate was chosen.
    fn chosen(&self, task: usize, choice: &Choice) -> Result<(), String>;

    /// Something has changed.
    fn progress(&self, progress: &Progress);
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn starting(&self, _task: usize, _candidate: usize) -> Result<bool, String> {
        Ok(true)
    }

    fn tried(&self, _report: &TrialReport) -> Result<(), String> {
        Ok(())
    }

    fn chosen(&self, _task: usize, _choice: &Choice) -> Result<(), String> {
        Ok(())
    }

    fn progress(&self, _progress: &Progress) {}
}
