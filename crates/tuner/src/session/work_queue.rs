//! A queue that threads take work from until it is closed.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Work in order of arrival, spare work after all other. Who fills it bounds it: no session has more in flight than it has asked for.
pub(super) struct WorkQueue<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

struct State<T> {
    waiting: VecDeque<T>,
    spare: VecDeque<T>,
    is_closed: bool,
}

impl<T> WorkQueue<T> {
    pub(super) fn new() -> Self {
        let state = State { waiting: VecDeque::new(), spare: VecDeque::new(), is_closed: false };
        Self { state: Mutex::new(state), arrived: Condvar::new() }
    }

    /// Adds work; what comes after the end is dropped.
    pub(super) fn push(&self, work: T) {
        self.push_to(work, |state| &mut state.waiting);
    }

    /// Adds work that is taken where there is no other.
    pub(super) fn push_spare(&self, work: T) {
        self.push_to(work, |state| &mut state.spare);
    }

    fn push_to(&self, work: T, list: impl Fn(&mut State<T>) -> &mut VecDeque<T>) {
        let mut state = self.lock();
        if !state.is_closed {
            list(&mut state).push_back(work);
            self.arrived.notify_one();
        }
    }

    /// Waits for work; `None` where there is none and there will be none.
    pub(super) fn pop(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            let work = state.waiting.pop_front().or_else(|| state.spare.pop_front());
            if work.is_some() {
                return work;
            }
            if state.is_closed {
                return None;
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends it: what waits is dropped, and threads that wait for work go.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.waiting.clear();
        state.spare.clear();
        self.arrived.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_taken_once_and_in_order_until_the_end() {
        let queue = WorkQueue::new();
        (0..100).for_each(|number| queue.push(number));
        let taken: Vec<i32> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut taken = Vec::new();
                        while let Some(number) = queue.pop() {
                            taken.push(number);
                            if number == 99 {
                                queue.close();
                            }
                        }
                        assert!(taken.is_sorted());
                        taken
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let mut sorted = taken;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        queue.push(7);
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn spare_work_is_taken_where_there_is_no_other() {
        let queue = WorkQueue::new();
        queue.push_spare(1);
        queue.push(2);
        queue.push_spare(3);
        queue.push(4);
        assert_eq!([(); 4].map(|()| queue.pop()), [2, 4, 1, 3].map(Some));
    }
}
