//! The thread that says when a time has come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;

use weft_scheduler::Time;

use crate::call::lock;
use crate::clock::Clock;
use crate::shared::Shared;

/// The way to the thread, which ends when this is dropped.
pub(crate) struct Alarm {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    times: Mutex<Times>,
    changed: Condvar,
}

#[derive(Default)]
struct Times {
    clock: Option<Clock>,
    due: BinaryHeap<Reverse<Time>>,
    whom: Weak<Shared>,
    is_over: bool,
}

impl Alarm {
    pub(crate) fn start() -> std::io::Result<Self> {
        let state = Arc::new(State::default());
        let watched = state.clone();
        thread::Builder::new().name("weft-alarm".into()).spawn(move || watched.watch())?;
        Ok(Self { state })
    }

    /// Wakes this engine from now on.
    pub(crate) fn wakes(&self, whom: Weak<Shared>) {
        lock(&self.state.times).whom = whom;
    }

    /// Wakes at a time.
    pub(crate) fn set(&self, clock: Clock, at: Time) {
        let mut times = lock(&self.state.times);
        times.clock = Some(clock);
        let is_sooner = times.due.peek().is_none_or(|&Reverse(first)| at < first);
        times.due.push(Reverse(at));
        drop(times);
        if is_sooner {
            self.state.changed.notify_one();
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        lock(&self.state.times).is_over = true;
        self.state.changed.notify_one();
    }
}

impl State {
    fn watch(&self) {
        let mut times = lock(&self.times);
        while !times.is_over {
            let first = times.due.peek().map(|&Reverse(first)| first);
            let (Some(first), Some(clock)) = (first, times.clock) else {
                times = self.changed.wait(times).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let wait = clock.until(first);
            if !wait.is_zero() {
                let waited = self.changed.wait_timeout(times, wait);
                times = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let now = clock.now();
            while times.due.peek().is_some_and(|&Reverse(first)| first <= now) {
                times.due.pop();
            }
            let whom = times.whom.upgrade();
            drop(times);
            if let Some(whom) = whom {
                whom.wake();
            }
            times = lock(&self.times);
        }
    }
}
