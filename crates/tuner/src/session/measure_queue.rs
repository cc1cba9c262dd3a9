//! Jobs whose candidates are compiled, for the benches that try them. What one bench has loaded it need not load again:
//! loading waits for what the device runs, and holds everybody else up.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::compile_queue::Code;
use super::measure::Job;

/// For how many jobs that wait for the same code one more bench loads it.
const CROWD: usize = 3;

/// The queue. Who fills it bounds it: no session has more in flight than it has asked for.
#[derive(Default)]
pub(super) struct MeasureQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(Option<Code>, Job)>,
    /// Jobs that a bench takes which has nothing else to do.
    spare: VecDeque<Job>,
    /// The benches that have loaded it.
    loaded: HashMap<Code, Vec<usize>>,
    is_closed: bool,
}

impl MeasureQueue {
    /// Adds a job that needs `code`, where it needs any; what comes after the end is dropped.
    pub(super) fn push(&self, job: Job, code: Option<Code>) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        match job.is_spare {
            true => state.spare.push_back(job),
            false => state.waiting.push_back((code, job)),
        }
        self.changed.notify_all();
    }

    /// Waits for a job for the bench of a number; `None` where there is none and there will be none.
    pub(super) fn pop(&self, bench: usize) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.take(bench) {
                return Some(job);
            }
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends it: what waits is dropped, and threads that wait for jobs go.
    pub(super) fn close(&self) {
        *self.lock() = State { is_closed: true, ..State::default() };
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The first job for which the bench has nothing to load; else one for which nobody has; else one whose code so many
    /// wait for that one more bench should have it; else a spare one.
    fn take(&mut self, bench: usize) -> Option<Job> {
        let first = |wanted: &dyn Fn(Option<Code>) -> bool| {
            self.waiting.iter().position(|(code, _)| wanted(*code))
        };
        let benches = |code: Code| self.loaded.get(&code).map_or(&[][..], Vec::as_slice);
        let is_own = |code: Option<Code>| code.is_none_or(|code| benches(code).contains(&bench));
        let is_new = |code: Option<Code>| code.is_some_and(|code| benches(code).is_empty());
        let is_crowded = |code: Option<Code>| {
            let waiting = self.waiting.iter().filter(|(other, _)| *other == code).count();
            code.is_some_and(|code| waiting >= CROWD * benches(code).len())
        };
        let place = first(&is_own).or_else(|| first(&is_new)).or_else(|| first(&is_crowded));
        let Some((code, job)) = place.and_then(|place| self.waiting.remove(place)) else {
            return self.spare.pop_front();
        };
        if let Some(code) = code {
            let benches = self.loaded.entry(code).or_default();
            if !benches.contains(&bench) {
                benches.push(bench);
            }
        }
        Some(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(candidate: usize) -> Job {
        Job::new(0, candidate)
    }

    /// What a bench takes; `None` where it would wait.
    fn taken(queue: &MeasureQueue, bench: usize) -> Option<usize> {
        queue.lock().take(bench).map(|job| job.candidate)
    }

    #[test]
    fn a_bench_takes_what_it_has_loaded_then_what_nobody_has() {
        let queue = MeasureQueue::default();
        queue.push(job(0), Some(7));
        queue.push(job(1), Some(7));
        queue.push(job(2), Some(8));
        queue.push(job(3), None);
        assert_eq!(taken(&queue, 0), Some(3), "for which nothing has to be loaded");
        assert_eq!(taken(&queue, 0), Some(0));
        assert_eq!(taken(&queue, 1), Some(2), "7 is loaded elsewhere");
        assert_eq!(taken(&queue, 1), None);
        assert_eq!(taken(&queue, 0), Some(1));
    }

    #[test]
    fn what_many_wait_for_is_loaded_once_more() {
        let queue = MeasureQueue::default();
        (0..1 + CROWD).for_each(|candidate| queue.push(job(candidate), Some(7)));
        assert_eq!(taken(&queue, 0), Some(0));
        assert_eq!(taken(&queue, 1), Some(1));
        assert_eq!(taken(&queue, 2), None);
        assert_eq!(taken(&queue, 1), Some(2));
    }

    #[test]
    fn spare_jobs_are_taken_where_there_is_no_other() {
        let queue = MeasureQueue::default();
        queue.push(Job { is_spare: true, ..job(1) }, None);
        queue.push(job(2), None);
        queue.push(Job { is_spare: true, ..job(3) }, Some(7));
        assert_eq!([(); 4].map(|()| taken(&queue, 0)), [Some(2), Some(1), Some(3), None]);
    }

    #[test]
    fn threads_take_every_job_once_and_go_at_the_end() {
        let queue = MeasureQueue::default();
        let (sender, passed) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            for bench in 0..4 {
                let (queue, sender) = (&queue, sender.clone());
                scope.spawn(move || {
                    while let Some(job) = queue.pop(bench) {
                        sender.send(job.candidate).unwrap();
                    }
                });
            }
            for candidate in 0..300 {
                queue.push(job(candidate), (candidate % 5 > 0).then_some(candidate as u64 % 41));
            }
            let mut all: Vec<usize> = passed.iter().take(300).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..300));
            queue.close();
        });
        queue.push(job(0), None);
        assert!(queue.pop(0).is_none());
    }
}
