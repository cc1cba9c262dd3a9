//! What a session tells of itself while it runs, and what it writes down.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_tuner::Recorder;
use weft_tuner::report::ProgressReport;
use weft_tuner::session::{self, Choice, Observer, Task, TrialReport};

use super::document::TuningDocument;

/// The document of the session at hand, which those who ask are shown.
#[derive(Clone, Default)]
pub(super) struct Journal(Arc<Mutex<TuningDocument>>);

impl Journal {
    /// What is known at this moment.
    pub(super) fn document(&self) -> TuningDocument {
        self.lock().clone()
    }

    pub(super) fn write(&self, change: impl FnOnce(&mut TuningDocument)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, TuningDocument> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches the session for one size: the database gets what it finds, the journal how far it is.
pub(super) struct Watching<'a> {
    pub(super) recorder: &'a Recorder<'a>,
    pub(super) tasks: &'a [Task],
    pub(super) size: usize,
    pub(super) journal: &'a Journal,
}

impl Observer for Watching<'_> {
    fn starting(&self, task: usize, candidate: usize) -> Result<bool, String> {
        let may_run = self.recorder.starting(self.tasks, task, candidate);
        may_run.map_err(|error| error.to_string())
    }

    fn tried(&self, report: &TrialReport) -> Result<(), String> {
        self.recorder.tried(self.tasks, report).map_err(|error| error.to_string())
    }

    fn chosen(&self, task: usize, choice: &Choice) -> Result<(), String> {
        self.recorder.chosen(self.tasks, task, choice).map_err(|error| error.to_string())
    }

    fn progress(&self, progress: &session::Progress) {
        let progress = ProgressReport::of(self.size, progress);
        self.journal.write(|document| document.progress = Some(progress));
    }
}
