//! Moments in which something else uses the device: what is launched meanwhile begins afterwards.

use std::collections::VecDeque;

use weft_scheduler::Time;

use crate::running::Execution;

/// Whether something else uses the device, and what waits for its end.
#[derive(Default)]
pub(crate) struct Pause {
    goes_on: bool,
    held: VecDeque<Execution>,
}

impl Pause {
    pub(crate) fn begin(&mut self) {
        self.goes_on = true;
    }

    pub(crate) fn end(&mut self) {
        self.goes_on = false;
    }

    /// Keeps what is launched while something else uses the device; gives back what can begin at once.
    pub(crate) fn hold(&mut self, execution: Execution) -> Option<Execution> {
        if !self.goes_on && self.held.is_empty() {
            return Some(execution);
        }
        self.held.push_back(execution);
        None
    }

    /// The next of those that were held, which begins now, where the device is there for it.
    pub(crate) fn release(&mut self, now: Time) -> Option<Execution> {
        if self.goes_on {
            return None;
        }
        let execution = self.held.pop_front()?;
        let alone = execution.ends.since(execution.started);
        Some(Execution { started: now, ends: now + alone, ..execution })
    }
}
