//! Stages that were found, and whether they replace those that were known.

use weft_scheduler::regulate::{Lockstep, Mix, MixSchedule, Stages};

use super::subject::Subject;

/// A schedule that is known stays unless another one is faster by more than noise.
const KNOWN_STAYS: f64 = 1.01;

/// Shared launches are run where they are predicted to take at most so many times as long as the best schedule took.
const WITHIN_REACH: f64 = 1.15;

/// Stages, and how long they took.
pub(super) struct Found {
    pub(super) stages: Stages,
    pub(super) schedule: MixSchedule,
    pub(super) us: f64,
    /// What was predicted of them when they were first run.
    pub(super) predicted_us: f64,
}

impl Found {
    /// Stages of which nothing is known here but what is predicted.
    pub(super) fn unmeasured(stages: Stages, mix: &Mix) -> Self {
        let schedule = stages.schedule(mix);
        let predicted_us = schedule.timeline(mix).makespan.us();
        Self { stages, schedule, us: f64::INFINITY, predicted_us }
    }
}

/// What a search came to: the best of it, and what was known before, where that is something else.
pub(super) struct Finalists {
    pub(super) best: Found,
    pub(super) rival: Option<Found>,
    /// The best is what was known.
    is_known: bool,
}

impl Finalists {
    pub(super) fn new(best: Found, known: Option<Stages>, mix: &Mix) -> Self {
        let known = known.map(|stages| Found::unmeasured(stages, mix));
        let is_known = known.as_ref().is_some_and(|known| known.schedule == best.schedule);
        Self { best, rival: known.filter(|_| !is_known), is_known }
    }

    /// The mix in lockstep, where models share launches that way and it may be faster than the best schedule.
    pub(super) fn lockstep(&self, subject: &Subject, mix: &Mix) -> Option<Lockstep> {
        let lockstep = subject.lockstep(mix);
        let is_within_reach = lockstep.makespan.us() <= self.best.us * WITHIN_REACH;
        (lockstep.shared_count() > 0 && is_within_reach).then_some(lockstep)
    }

    /// Whether what was known stays, by the times of both in the same rounds.
    pub(super) fn rival_stays(&self, best_us: f64, rival_us: Option<f64>) -> bool {
        self.rival.is_some() && rival_us.is_some_and(|rival_us| rival_us <= best_us * KNOWN_STAYS)
    }

    /// Which it is in the end, and whether it was known.
    pub(super) fn into_chosen(self, rival_stays: bool) -> (Found, bool) {
        match self.rival.filter(|_| rival_stays) {
            Some(rival) => (rival, true),
            None => (self.best, self.is_known),
        }
    }
}
