//! Threads that compile candidates before they are tried.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::TuneError;
use super::measure::{Finished, Job};
use super::task::Task;
use super::work_queue::WorkQueue;
use weft_device::Trial;

/// Compiles what is in `from`, and hands it on to `to`; what does not compile has failed.
pub(super) fn compile(
    tasks: &[Task],
    from: &WorkQueue<Job>,
    to: &WorkQueue<Job>,
    finished: &Sender<Result<Finished, TuneError>>,
) -> Duration {
    let mut spent = Duration::ZERO;
    while let Some(job) = from.pop() {
        let start = Instant::now();
        let compiled = tasks[job.task].operator.compile(job.candidate);
        spent += start.elapsed();
        match compiled {
            Ok(()) => to.push(job),
            Err(error) => {
                let trial = Trial::Failed(error.to_string());
                // Nobody listens any more where the session has ended.
                let _ = finished.send(Ok(Finished { job, bench: None, trial }));
            }
        }
    }
    spent
}
