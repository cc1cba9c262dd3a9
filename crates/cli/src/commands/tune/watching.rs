//! Whoever runs `weft tune` sees how far it is, the database gets what it finds, and a candidate that does not end is ended.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weft_tuner::Recorder;
use weft_tuner::report::ProgressReport;
use weft_tuner::session::{self, Choice, Observer, Task, TrialReport};

use super::message::Message;
use super::worker::tell;

/// What a process exits with that wants to be started again: what it was doing is noted, and it cannot go on.
pub(super) const START_AGAIN: i32 = 75;

/// Writes down what a session finds, and tells how far it is.
pub(super) struct Watching<'a> {
    pub(super) recorder: &'a Recorder<'a>,
    pub(super) tasks: &'a [Task],
    pub(super) size: usize,
    pub(super) watchdog: &'a Watchdog,
}

impl Observer for Watching<'_> {
    fn starting(&self, task: usize, candidate: usize) -> Result<bool, String> {
        let may_run = self.recorder.starting(self.tasks, task, candidate);
        let may_run = may_run.map_err(|error| error.to_string())?;
        if may_run {
            self.watchdog.started(task, candidate);
        }
        Ok(may_run)
    }

    fn tried(&self, report: &TrialReport) -> Result<(), String> {
        self.watchdog.ended(report.task, report.candidate);
        self.recorder.tried(self.tasks, report).map_err(|error| error.to_string())
    }

    fn chosen(&self, task: usize, choice: &Choice) -> Result<(), String> {
        self.recorder.chosen(self.tasks, task, choice).map_err(|error| error.to_string())
    }

    fn progress(&self, progress: &session::Progress) {
        tell(&Message::Progress(ProgressReport::of(self.size, progress)));
    }
}

/// Knows since when each candidate runs. Nothing can end a kernel but the end of its process.
#[derive(Default)]
pub(super) struct Watchdog {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    running: HashMap<(usize, usize), Instant>,
    is_over: bool,
}

/// Ends the watch when it is dropped.
pub(super) struct WatchGuard<'a>(&'a Watchdog);

impl Drop for WatchGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

impl Watchdog {
    fn started(&self, task: usize, candidate: usize) {
        self.lock().running.insert((task, candidate), Instant::now());
    }

    fn ended(&self, task: usize, candidate: usize) {
        self.lock().running.remove(&(task, candidate));
    }

    pub(super) fn guard(&self) -> WatchGuard<'_> {
        WatchGuard(self)
    }

    /// Waits until the session is over; where a candidate runs past the limit, notes it by `hung` and ends the process.
    pub(super) fn watch(&self, limit: Duration, hung: impl Fn(usize, usize)) {
        if let Some((task, candidate)) = self.wait(limit) {
            hung(task, candidate);
            std::process::exit(START_AGAIN);
        }
    }

    /// The candidate that ran past the limit; `None` where the session was over before.
    fn wait(&self, limit: Duration) -> Option<(usize, usize)> {
        let mut state = self.lock();
        loop {
            if state.is_over {
                return None;
            }
            let late = state.running.iter().find(|(_, since)| since.elapsed() > limit);
            if let Some((&late, _)) = late {
                return Some(late);
            }
            let pause = limit / 10;
            let waited = self.changed.wait_timeout(state, pause);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_does_not_end_is_found() {
        let limit = Duration::from_millis(40);
        let watchdog = Watchdog::default();
        watchdog.started(0, 1);
        watchdog.started(2, 3);
        watchdog.ended(0, 1);
        assert_eq!(watchdog.wait(limit), Some((2, 3)));
        watchdog.ended(2, 3);
        drop(watchdog.guard());
        assert_eq!(watchdog.wait(limit), None);
    }
}
