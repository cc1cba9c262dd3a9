//! Trials on their way between the session that wants them and the partition that runs them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weft_device::{DeviceError, Trial, TunableOperator};

/// A trial that is wanted.
pub(super) struct WantedTrial {
    pub(super) operator: Arc<dyn TunableOperator>,
    pub(super) candidate: usize,
    pub(super) effort: Duration,
}

/// What came of a turn.
pub(super) enum Turn {
    /// The candidate was tried.
    Tried(Trial),
    /// The partition has fewer cores or SMs than the trial is for.
    TooSmall,
    /// The bench is lost.
    Lost(DeviceError),
}

/// Trials by the numbers that requests name them with. A session has no more of them at once than benches.
#[derive(Default)]
pub(super) struct Trials {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: i64,
    waiting: HashMap<i64, WantedTrial>,
    done: HashMap<i64, Turn>,
}

impl Trials {
    /// Hands a trial in; says the number that it runs by.
    pub(super) fn hand_in(&self, trial: WantedTrial) -> i64 {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.waiting.insert(number, trial);
        number
    }

    /// Takes out the trial of a number, to run it; `None` where there is none.
    pub(super) fn take(&self, number: i64) -> Option<WantedTrial> {
        self.lock().waiting.remove(&number)
    }

    /// Says what came of a trial that was taken out.
    pub(super) fn answer(&self, number: i64, turn: Turn) {
        self.lock().done.insert(number, turn);
    }

    /// Takes back what came of a trial; `None` where it has not run, and now will not.
    pub(super) fn collect(&self, number: i64) -> Option<Turn> {
        let mut state = self.lock();
        state.waiting.remove(&number);
        state.done.remove(&number)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
