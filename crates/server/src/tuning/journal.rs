//! What a session tells of itself while it runs, and what it writes down.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weft_tuner::Recorder;
use weft_tuner::session::{self, Choice, Observer, Outcome, Phase, Task, TrialReport};

use super::document::{TunedOperator, TunedSize, TuningDocument, TuningProgress};

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
        let phase = match progress.phase {
            Phase::Screening => "trials",
            Phase::Finals => "finals",
        };
        let progress = TuningProgress {
            size: self.size,
            phase: phase.into(),
            done: progress.done,
            expected: progress.expected,
            best_us: us(progress.best_time),
            untuned_us: us(progress.untuned_time),
        };
        self.journal.write(|document| document.progress = Some(progress));
    }
}

/// What came of one size.
pub(super) fn report(size: usize, tasks: &[Task], outcome: &Outcome) -> TunedSize {
    let operators = tasks.iter().zip(&outcome.choices).map(|(task, choice)| TunedOperator {
        operator: task.operator.key().operator.clone(),
        precision: task.operator.key().precision.clone(),
        occurrences: task.occurrences,
        candidates: task.operator.candidates().len(),
        kernel: choice.map(|it| task.operator.candidates()[it.candidate].name.clone()),
        time_us: choice.map(|it| us(it.time)),
        untuned_time_us: choice.map(|it| us(it.untuned_time)),
        trials: choice.map(|it| it.trials),
    });
    let statistics = &outcome.statistics;
    TunedSize {
        partition_size: size,
        operators: operators.collect(),
        trials: statistics.trials,
        repeated: statistics.repeated,
        wrong: statistics.wrong,
        failed: statistics.failed,
        benches: statistics.benches,
        screening_s: statistics.screening_time.as_secs_f64(),
        finals_s: (statistics.total_time - statistics.screening_time).as_secs_f64(),
        total_s: statistics.total_time.as_secs_f64(),
        compile_core_s: statistics.compile_time.as_secs_f64(),
    }
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
