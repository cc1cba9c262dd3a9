//! A queue that threads take work from until it is closed.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Work in order of arrival. Who fills it bounds it: no session has more in flight than it has asked for.
pub(super) struct WorkQueue<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

struct State<T> {
    waiting: VecDeque<T>,
    is_closed: bool,
}

impl<T> WorkQueue<T> {
    pub(super) fn new() -> Self {
        let state = State { waiting: VecDeque::new(), is_closed: false };
        Self { state: Mutex::new(state), arrived: Condvar::new() }
    }

    /// Adds work; what comes after the end is dropped.
    pub(super) fn push(&self, work: T) {
        let mut state = self.lock();
        if !state.is_closed {
            state.waiting.push_back(work);
            self.arrived.notify_one();
        }
    }

    /// Waits for work; `None` where there is none and there will be none.
    pub(super) fn pop(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(work) = state.waiting.pop_front() {
                return Some(work);
            }
            if state.is_closed {
                return None;
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends it: what waits is given back, and threads that wait for work go.
    pub(super) fn close(&self) -> Vec<T> {
        let mut state = self.lock();
        state.is_closed = true;
        self.arrived.notify_all();
        state.waiting.drain(..).collect()
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
}
