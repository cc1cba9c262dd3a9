//! Interruptions: what runs in a lane pauses for someone who is due before it.
//!
//! Where the device can do that, a request that comes while a batch runs is not blocked by it: it is launched at once, if it
//! is due before the batch is, and if the batch and all who wait are still surely in time after it. What is left of the batch
//! is then on the agenda like any other work, with the batch's deadline, so that predictions know about it, and more who
//! are due before it may go first. One batch at most is paused; an interruption itself is not interrupted.

use super::Lane;
use super::agenda::{Newcomer, Spot, Upcoming};
use super::best_effort::LEAST_SHARE;
use super::outlook::{Cost, Outlook, Work};
use crate::time::{Span, Time};

/// What ends within this share of the time that a newcomer takes is waited for: an interruption costs something.
const WORTH_WAITING: f64 = 0.25;

/// What runs, as those who wait see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Occupant {
    /// The earliest of its requests'.
    pub(super) deadline: Time,
    pub(super) certainty: f64,
    pub(super) place: usize,
    pub(super) requests: u32,
}

/// What is left of a batch that is paused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paused(Upcoming);

impl Lane {
    /// The same lane on a partition where a launch can interrupt another, or cannot.
    #[must_use]
    pub fn with_interruptions(mut self, can_interrupt: bool) -> Self {
        self.can_interrupt = can_interrupt;
        self
    }

    /// Where a request would run that is launched at once, if it may be; `alone` is what it costs.
    pub(super) fn interruption(
        &self,
        newcomer: &Newcomer,
        alone: Cost,
        now: Time,
    ) -> Option<(Outlook, Spot)> {
        let occupant = self.occupant.filter(|_| self.can_interrupt && !self.has_paused())?;
        let left = self.free_at(now).since(now);
        let is_first =
            self.agenda.upcoming.first().is_none_or(|it| it.deadline > newcomer.deadline);
        let is_urgent = newcomer.deadline < occupant.deadline && is_first;
        if !newcomer.is_first || !is_urgent || left <= alone.duration * WORTH_WAITING {
            return None;
        }
        let answered = Outlook::from(now, 0.0).then(alone);
        let is_in_time =
            answered.later(newcomer.headroom.opening).keeps(newcomer.deadline, newcomer.certainty);
        let unchanged = Outlook::from(self.free_at(now), self.busy_deviation_ns);
        let is_borne = unchanged.then(alone).keeps(occupant.deadline, occupant.certainty);
        let rest = Cost { duration: left, deviation_ns: self.busy_deviation_ns };
        let may = is_in_time && is_borne && self.agenda.can_wait(self.begin(now), alone);
        // Best effort that was begun gets its share of the time, however much comes that has a deadline.
        let due = match occupant.deadline {
            Time::NEVER => now + rest.duration * LEAST_SHARE.recip(),
            deadline => deadline,
        };
        may.then_some((answered, Spot::Interrupting { own: alone, rest, due }))
    }

    /// What runs is paused; so much is left of it, and due at an instant.
    pub(super) fn pause(&mut self, rest: Cost, deadline: Time) {
        if let Some(Occupant { certainty, place, requests: count, .. }) = self.occupant {
            let (cost, before, is_paused) = (rest, Work::default(), true);
            let rest = Upcoming { place, is_paused, count, deadline, cost, certainty, before };
            self.agenda.upcoming.insert(0, rest);
            self.set_busy_until(Time::START);
        }
    }

    fn paused(&self) -> Option<usize> {
        self.agenda.upcoming.iter().position(|batch| batch.is_paused)
    }

    /// Whether a batch is paused.
    pub fn has_paused(&self) -> bool {
        self.can_interrupt && self.paused().is_some()
    }

    /// Lets the batch that is paused go on, if it is next; says whether it does.
    pub fn resume(&mut self, now: Time) -> bool {
        if self.paused() != Some(0) {
            return false;
        }
        let rest = self.agenda.upcoming.remove(0);
        self.agenda.count(0);
        self.set_busy_with(rest.cost, now);
        let Upcoming { deadline, certainty, place, count: requests, .. } = rest;
        self.occupant = Some(Occupant { deadline, certainty, place, requests });
        true
    }

    /// What is paused takes so much longer: less of it was done than it seemed.
    pub(crate) fn delay_paused(&mut self, by: Span) {
        if let Some(index) = self.paused() {
            self.agenda.upcoming[index].cost.duration += by;
            self.agenda.count(index);
        }
    }

    /// The batch that is paused is no longer this lane's: it has ended, or belongs to another lane.
    pub(crate) fn take_paused(&mut self) -> Option<Paused> {
        let rest = self.agenda.upcoming.remove(self.paused()?);
        self.agenda.count(0);
        Some(Paused(rest))
    }

    /// A batch that was paused in another lane of the same partition is paused in this one.
    pub(crate) fn put_paused(&mut self, Paused(rest): Paused) {
        self.agenda.upcoming.insert(0, rest);
        self.agenda.count(0);
    }
}
