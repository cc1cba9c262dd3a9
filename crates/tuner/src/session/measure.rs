//! Threads that try candidates, one on each bench.

use std::sync::mpsc::Sender;
use std::time::Duration;

use weft_device::{Bench, Trial};

use super::TuneError;
use super::compile_queue::Code;
use super::measure_queue::MeasureQueue;
use super::observer::Observer;
use super::task::Task;

/// A candidate that is to be tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) task: usize,
    pub(super) candidate: usize,
    /// How often it was tried before and something interfered.
    pub(super) attempt: usize,
    /// The least that it took then.
    pub(super) least: Option<Duration>,
    /// It is tried where a bench has nothing else to do.
    pub(super) is_spare: bool,
}

impl Job {
    pub(super) fn new(task: usize, candidate: usize) -> Self {
        Self { task, candidate, attempt: 0, least: None, is_spare: false }
    }
}

/// What has to be compiled for a job.
pub(super) fn code_of(tasks: &[Task], job: Job) -> Option<Code> {
    tasks[job.task].operator.candidates()[job.candidate].code
}

/// A candidate that was tried.
pub(super) struct Finished {
    pub(super) job: Job,
    /// The bench that tried it; `None` where it did not get that far.
    pub(super) bench: Option<usize>,
    pub(super) trial: Trial,
}

/// Why a candidate that may be fast is not tried.
pub(super) const BANNED: &str = "processes have ended while they tried it";

/// What all benches share.
#[derive(Clone, Copy)]
pub(super) struct Measuring<'a> {
    pub(super) tasks: &'a [Task],
    pub(super) effort: Duration,
    pub(super) from: &'a MeasureQueue,
    pub(super) observer: &'a dyn Observer,
}

impl Measuring<'_> {
    /// Tries what is in the queue on one bench until the queue is closed; the error that ends the session is said too.
    pub(super) fn run(
        self,
        number: usize,
        bench: &mut dyn Bench,
        finished: &Sender<Result<Finished, TuneError>>,
    ) {
        while let Some(job) = self.from.pop() {
            let trial = self.try_on(bench, job);
            let is_lost = trial.is_err();
            let ended = trial.map(|trial| Finished { job, bench: Some(number), trial });
            if finished.send(ended).is_err() || is_lost {
                return;
            }
        }
    }

    fn try_on(self, bench: &mut dyn Bench, job: Job) -> Result<Trial, TuneError> {
        let may_run = self.observer.starting(job.task, job.candidate);
        match may_run.map_err(TuneError::Observer)? {
            true => {
                let operator = &*self.tasks[job.task].operator;
                Ok(bench.try_candidate(operator, job.candidate, self.effort)?)
            }
            false => Ok(Trial::Failed(BANNED.to_string())),
        }
    }
}
