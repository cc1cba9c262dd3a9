//! Whoever runs `weft tune` sees how far it is, and the database gets what it finds.

use weft_tuner::Recorder;
use weft_tuner::session::{Observer, Phase, Progress, Task, TrialReport};

use crate::progress;

/// Writes down what a session finds, and shows how far it is.
pub(super) struct Watching<'a> {
    pub(super) recorder: &'a Recorder<'a>,
    pub(super) tasks: &'a [Task],
}

impl Observer for Watching<'_> {
    fn starting(&self, task: usize, candidate: usize) -> Result<bool, String> {
        self.recorder.starting(self.tasks, task, candidate).map_err(|error| error.to_string())
    }

    fn tried(&self, report: &TrialReport) -> Result<(), String> {
        self.recorder.tried(self.tasks, report).map_err(|error| error.to_string())
    }

    fn progress(&self, progress: &Progress) {
        let phase = match progress.phase {
            Phase::Screening => "trials",
            Phase::Finals => "finals",
        };
        let gain = progress.untuned_time.as_secs_f64() / progress.best_time.as_secs_f64();
        progress::show(format!(
            "{} of {} {phase}, {} of {} operators, {:.0} us ({gain:.2} x)",
            progress.done,
            progress.expected,
            progress.finished_tasks,
            progress.tasks,
            progress.best_time.as_secs_f64() * 1e6,
        ));
    }
}
