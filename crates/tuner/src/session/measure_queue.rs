//! Jobs whose candidates are compiled, for the benches that try them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::measure::Job;

/// The queue. Who fills it bounds it: no session has more in flight than it has asked for.
#[derive(Default)]
pub(super) struct MeasureQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    /// Jobs that a bench takes which has nothing else to do.
    spare: VecDeque<Job>,
    is_closed: bool,
}

impl MeasureQueue {
    /// Adds a job; what comes after the end is dropped.
    pub(super) fn push(&self, job: Job) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        match job.is_spare {
            true => state.spare.push_back(job),
            false => state.waiting.push_back(job),
        }
        self.changed.notify_one();
    }

    /// Waits for a job; `None` where there is none and there will be none.
    pub(super) fn pop(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.take() {
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
    fn take(&mut self) -> Option<Job> {
        self.waiting.pop_front().or_else(|| self.spare.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(candidate: usize) -> Job {
        Job::new(0, candidate)
    }

    #[test]
    fn spare_jobs_are_taken_where_there_is_no_other() {
        let queue = MeasureQueue::default();
        queue.push(Job { is_spare: true, ..job(1) });
        queue.push(job(2));
        queue.push(Job { is_spare: true, ..job(3) });
        let taken = [(); 4].map(|()| queue.lock().take().map(|job| job.candidate));
        assert_eq!(taken, [Some(2), Some(1), Some(3), None]);
    }

    #[test]
    fn threads_take_every_job_once_and_go_at_the_end() {
        let queue = MeasureQueue::default();
        let (sender, passed) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let (queue, sender) = (&queue, sender.clone());
                scope.spawn(move || {
                    while let Some(job) = queue.pop() {
                        sender.send(job.candidate).unwrap();
                    }
                });
            }
            (0..300).for_each(|candidate| queue.push(job(candidate)));
            let mut all: Vec<usize> = passed.iter().take(300).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..300));
            queue.close();
        });
        queue.push(job(0));
        assert!(queue.pop().is_none());
    }
}
