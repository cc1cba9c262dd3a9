//! A batch of trials without a search: for those who want to know how far measurements can be trusted.

use weft_device::{Trial, TunableDevice};

use super::measure::Job;
use super::observer::Silent;
use super::options::TuneOptions;
use super::pipeline::{self, BenchPlaces};
use super::{Assignment, TuneError};

/// A candidate of a task, by their places in their lists.
pub type TaskCandidate = (usize, usize);

/// Tries candidates of the assignment's tasks as a session would, on partitions of `bench_size`; what came of each, in
/// the order asked for.
pub fn try_all(
    device: &dyn TunableDevice,
    Assignment { tasks, .. }: Assignment<'_>,
    bench_size: usize,
    candidates: &[TaskCandidate],
    options: &TuneOptions,
) -> Result<Vec<Trial>, TuneError> {
    let places = BenchPlaces::new(device, bench_size, options)?;
    let (trials, _) = pipeline::run(tasks, &places, options, &Silent, |pipeline| {
        for (place, &(task, candidate)) in candidates.iter().enumerate() {
            pipeline.submit(Job { attempt: place, ..Job::new(task, candidate) });
        }
        let mut trials: Vec<Option<Trial>> = vec![None; candidates.len()];
        for finished in pipeline.finished.iter().take(candidates.len()) {
            let finished = finished?;
            trials[finished.job.attempt] = Some(finished.trial);
        }
        let never_came = || Trial::Failed("the bench was lost".to_string());
        Ok(trials.into_iter().map(|trial| trial.unwrap_or_else(never_came)).collect())
    });
    trials
}
