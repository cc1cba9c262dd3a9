//! Threads that compile candidates before they are tried.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use weft_device::Trial;

use super::TuneError;
use super::compile_queue::{CompileQueue, Taking};
use super::measure::Finished;
use super::measure_queue::MeasureQueue;
use super::task::Task;

/// Compiles what is in `from`, and hands it on to `to`; what does not compile has failed.
pub(super) fn compile(
    tasks: &[Task],
    taking: Taking,
    from: &CompileQueue,
    to: &MeasureQueue,
    finished: &Sender<Result<Finished, TuneError>>,
) -> Duration {
    let mut spent = Duration::ZERO;
    while let Some(claim) = from.pop(taking) {
        let job = claim.job;
        let start = Instant::now();
        let compiled = tasks[job.task].operator.compile(job.candidate);
        spent += start.elapsed();
        from.finish(&claim);
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
