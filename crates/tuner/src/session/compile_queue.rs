//! Jobs whose candidates may have to be compiled. What several of them need is compiled once, and those that find it
//! compiled wait for nobody.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::measure::Job;

/// What has to be compiled for a candidate, as its description names it.
pub(super) type Code = u64;

/// The queue. Who fills it bounds it: no session has more in flight than it has asked for.
#[derive(Default)]
pub(super) struct CompileQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Jobs that find compiled what they may share with others.
    ready: VecDeque<Job>,
    /// Jobs that a thread takes which has nothing else to do.
    spare: VecDeque<Job>,
    /// Jobs for which something is to be compiled that nobody has begun with.
    waiting: VecDeque<(Code, Job)>,
    begun: HashMap<Code, Begun>,
    is_closed: bool,
}

/// What was asked for before.
enum Begun {
    /// The jobs that need it besides the one that it is compiled for.
    InWork(Vec<Job>),
    Compiled,
}

/// A job whose candidate is to be compiled.
pub(super) struct Claim {
    pub(super) job: Job,
    /// What others wait for; see [`CompileQueue::finish`].
    code: Option<Code>,
}

/// Which jobs a thread takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    Any,
    /// Those that are ready, so that they need not wait until somebody is done with compiling, and then spare ones.
    Ready,
}

impl CompileQueue {
    /// Adds a job that needs `code`, where it needs any; what comes after the end is dropped.
    pub(super) fn push(&self, job: Job, code: Option<Code>) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        if job.is_spare {
            state.spare.push_back(job);
            self.changed.notify_all();
            return;
        }
        match code.map(|code| (code, state.begun.get_mut(&code))) {
            None | Some((_, Some(Begun::Compiled))) => state.ready.push_back(job),
            Some((_, Some(Begun::InWork(others)))) => others.push(job),
            Some((code, None)) => {
                state.begun.insert(code, Begun::InWork(Vec::new()));
                state.waiting.push_back((code, job));
            }
        }
        self.changed.notify_all();
    }

    /// Waits for a job; `None` where there is none and there will be none.
    pub(super) fn pop(&self, taking: Taking) -> Option<Claim> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.ready.pop_front() {
                return Some(Claim { job, code: None });
            }
            if taking == Taking::Any
                && let Some((code, job)) = state.waiting.pop_front()
            {
                return Some(Claim { job, code: Some(code) });
            }
            if taking == Taking::Ready
                && let Some(job) = state.spare.pop_front()
            {
                return Some(Claim { job, code: None });
            }
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What a claim was for is compiled, or cannot be: those that wait for it go on.
    pub(super) fn finish(&self, claim: &Claim) {
        let Some(code) = claim.code else { return };
        let mut state = self.lock();
        if let Some(Begun::InWork(others)) = state.begun.insert(code, Begun::Compiled) {
            state.ready.extend(others);
            self.changed.notify_all();
        }
    }

    /// How many things are to be compiled that nobody has begun with.
    pub(super) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// How many jobs wait for what is compiled for another one.
    pub(super) fn parked(&self) -> usize {
        let parked = |begun: &Begun| match begun {
            Begun::InWork(others) => others.len(),
            Begun::Compiled => 0,
        };
        self.lock().begun.values().map(parked).sum()
    }

    /// Ends it: threads that wait for jobs go.
    pub(super) fn close(&self) {
        *self.lock() = State { is_closed: true, ..State::default() };
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(candidate: usize) -> Job {
        Job::new(0, candidate)
    }

    fn taken(queue: &CompileQueue, taking: Taking) -> Option<usize> {
        // An end keeps it from waiting, and is no end for what is there.
        queue.lock().is_closed = true;
        let claim = queue.pop(taking);
        queue.lock().is_closed = false;
        claim.map(|claim| claim.job.candidate)
    }

    #[test]
    fn what_several_need_is_compiled_for_the_first_of_them() {
        let queue = CompileQueue::default();
        (0..3).for_each(|candidate| queue.push(job(candidate), Some(7)));
        queue.push(job(3), Some(8));
        assert_eq!((queue.waiting(), queue.parked()), (2, 2));
        let first = queue.pop(Taking::Any).unwrap();
        assert_eq!(first.job.candidate, 0);
        assert_eq!(taken(&queue, Taking::Any), Some(3));
        assert_eq!(taken(&queue, Taking::Any), None);
        queue.finish(&first);
        assert_eq!((queue.waiting(), queue.parked()), (0, 0));
        assert_eq!(taken(&queue, Taking::Ready), Some(1));
        queue.push(job(4), Some(7));
        assert_eq!(taken(&queue, Taking::Ready), Some(2));
        assert_eq!(taken(&queue, Taking::Ready), Some(4));
    }

    #[test]
    fn those_that_need_nothing_go_first() {
        let queue = CompileQueue::default();
        queue.push(job(0), Some(7));
        queue.push(job(1), None);
        assert_eq!(taken(&queue, Taking::Ready), Some(1));
        assert_eq!(taken(&queue, Taking::Ready), None);
        assert_eq!(taken(&queue, Taking::Any), Some(0));
    }

    #[test]
    fn spare_ones_hold_up_neither_what_is_ready_nor_those_that_compile() {
        let queue = CompileQueue::default();
        queue.push(Job { is_spare: true, ..job(0) }, Some(7));
        queue.push(job(1), None);
        queue.push(job(2), Some(7));
        assert_eq!(taken(&queue, Taking::Ready), Some(1));
        assert_eq!(taken(&queue, Taking::Any), Some(2));
        assert_eq!(taken(&queue, Taking::Any), None);
        assert_eq!(taken(&queue, Taking::Ready), Some(0));
    }

    #[test]
    fn threads_pass_every_job_on_once_and_go_at_the_end() {
        let queue = CompileQueue::default();
        let (sender, passed) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            for taking in [Taking::Any, Taking::Any, Taking::Ready] {
                let (queue, sender) = (&queue, sender.clone());
                scope.spawn(move || {
                    while let Some(claim) = queue.pop(taking) {
                        queue.finish(&claim);
                        sender.send(claim.job.candidate).unwrap();
                    }
                });
            }
            for candidate in 0..300 {
                let code = (candidate % 5 > 0).then_some(candidate as u64 % 41);
                queue.push(job(candidate), code);
            }
            let mut all: Vec<usize> = passed.iter().take(300).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..300));
            queue.close();
        });
        queue.push(job(0), None);
        assert!(queue.pop(Taking::Any).is_none());
    }
}
