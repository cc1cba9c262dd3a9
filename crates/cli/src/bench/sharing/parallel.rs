//! Jobs on all cores, their results in the order of the jobs.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Result;

/// Does every job, the first ones first, so many at a time. After a failure no further job is begun.
pub(super) fn on_all_cores<J: Sync, R: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(jobs.len());
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Result<R>)>> = Mutex::new(Vec::new());
    let take_turns = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { return };
            let result = work(job);
            if result.is_err() {
                next.store(jobs.len(), Ordering::Relaxed);
            }
            results.lock().expect("adding to a list does not panic").push((at, result));
        }
    };
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(take_turns))));
    let mut results = results.into_inner().expect("adding to a list does not panic");
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn results_stand_in_the_order_of_jobs() {
        let jobs: Vec<u64> = (0..100).collect();
        let squares = on_all_cores(&jobs, |job| Ok(job * job)).unwrap();
        assert_eq!(squares, jobs.iter().map(|job| job * job).collect::<Vec<_>>());
        assert!(on_all_cores(&[], |_: &u64| Ok(())).unwrap().is_empty());
    }

    #[test]
    fn the_first_failure_is_reported() {
        let fail = |&job: &u64| if job > 3 { bail!("job {job}") } else { Ok(job) };
        let first = on_all_cores(&(0..100).collect::<Vec<u64>>(), fail).unwrap_err().to_string();
        assert_eq!(first, "job 4");
    }
}
