//! The agenda: which batches a lane will run, in which order. Predictions are read off it, so that they come true.

use super::outlook::{Cost, Outlook, Work};
use super::shares::Headroom;
use crate::time::{Span, Time};

/// A batch that will run: so many requests of one queue, in the order in which they wait; or what is left of one that is
/// paused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Upcoming {
    /// The place of its queue.
    pub(super) place: usize,
    /// Whether it is what is left of a batch, whose requests wait no more.
    pub(super) is_paused: bool,
    /// Requests, at least 1.
    pub(super) count: u32,
    /// The earliest of its requests'.
    pub(super) deadline: Time,
    pub(super) cost: Cost,
    /// Standard deviations in reserve for its deadline.
    pub(super) certainty: f64,
    /// What runs before it; counted by [`Agenda::count`].
    pub(super) before: Work,
}

impl Upcoming {
    /// Whether it is made of requests that wait in a queue.
    pub(super) fn is_of(&self, place: usize) -> bool {
        self.place == place && !self.is_paused
    }

    fn is_kept_by(&self, outlook: Outlook) -> bool {
        outlook.keeps(self.deadline, self.certainty)
    }
}

/// One more request: whose and how it would be promised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Newcomer {
    /// Its model's number as a member of the lane.
    pub(super) member: usize,
    /// The place of its queue.
    pub(super) place: usize,
    pub(super) deadline: Time,
    pub(super) certainty: f64,
    pub(super) headroom: Headroom,
    /// Nothing waits in its queue.
    pub(super) is_first: bool,
}

/// Where one more request would run, and what the batch that it is in would then cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Spot {
    /// In a batch that is on the agenda, by its index.
    Joined(usize, Cost),
    /// In a new batch, before the one of this index.
    New(usize, Cost),
    /// At once, in a new batch, before what is left of the one that runs, which is then due at an instant.
    Interrupting { own: Cost, rest: Cost, due: Time },
}

/// Batches in the order in which they run: by deadline, unless a later one cannot wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Agenda {
    pub(super) upcoming: Vec<Upcoming>,
}

impl Agenda {
    /// When one more request would be answered, and where it would run: with the last batch of its queue, if that is in time
    /// and harms no one, or else in a new batch, by its deadline, but after all those that could not wait for it. `cost_of`
    /// tells what a batch of its queue costs, up to the largest that there may be.
    pub(super) fn spot(
        &self,
        begin: Outlook,
        newcomer: Newcomer,
        cost_of: impl Fn(u32) -> Option<Cost>,
    ) -> (Outlook, Spot) {
        let Newcomer { place, deadline, certainty, headroom, .. } = newcomer;
        let last_own = match newcomer.is_first {
            true => None,
            false => self.upcoming.iter().rposition(|batch| batch.is_of(place)),
        };
        if let Some(last) = last_own {
            let batch = &self.upcoming[last];
            let outlook = begin.after(batch.before);
            if let Some(cost) = cost_of(batch.count + 1) {
                let (joined, unchanged) = (outlook.then(cost), outlook.then(batch.cost));
                let is_in_time = joined.keeps(batch.deadline, certainty)
                    && joined.later(headroom.room).keeps(deadline, certainty);
                if is_in_time && self.first_harmed(last + 1, joined, unchanged).is_none() {
                    return (joined, Spot::Joined(last, cost));
                }
            }
        }
        let is_before = |batch: &Upcoming| batch.deadline <= deadline;
        let by_deadline = self.upcoming.iter().rposition(is_before);
        let mut position = last_own.max(by_deadline).map_or(0, |index| index + 1);
        let mut outlook = begin.after(self.before(position));
        let alone = cost_of(1).unwrap_or_default();
        loop {
            let added = outlook.then(alone);
            match self.first_harmed(position, added, outlook) {
                None => return (added, Spot::New(position, alone)),
                Some((harmed, after)) => (position, outlook) = (harmed + 1, after),
            }
        }
    }

    /// How much longer all batches take together with one more request at a spot.
    pub(super) fn added(&self, spot: Spot) -> Span {
        match spot {
            Spot::Joined(index, cost) => {
                cost.duration.saturating_sub(self.upcoming[index].cost.duration)
            }
            Spot::New(_, cost) | Spot::Interrupting { own: cost, .. } => cost.duration,
        }
    }

    /// What runs before the batch of an index, or altogether.
    fn before(&self, index: usize) -> Work {
        match self.upcoming.get(index) {
            Some(batch) => batch.before,
            None => self.all(),
        }
    }

    /// What runs altogether.
    pub(super) fn all(&self) -> Work {
        self.upcoming.last().map_or(Work::default(), |last| last.before.with(last.cost))
    }

    /// Counts what runs before each batch, from an index on.
    pub(super) fn count(&mut self, from: usize) {
        let mut before = match from.checked_sub(1).map(|index| &self.upcoming[index]) {
            Some(previous) => previous.before.with(previous.cost),
            None => Work::default(),
        };
        for batch in &mut self.upcoming[from..] {
            batch.before = before;
            before = before.with(batch.cost);
        }
    }

    /// The first batch from an index on that would no longer surely be in time, if what runs before it ended at
    /// `changed` instead of `unchanged`, and how things look after it without the change. What is predicted to be late
    /// either way is past harming.
    fn first_harmed(
        &self,
        from: usize,
        mut changed: Outlook,
        mut unchanged: Outlook,
    ) -> Option<(usize, Outlook)> {
        for (index, batch) in self.upcoming.iter().enumerate().skip(from) {
            changed = changed.then(batch.cost);
            unchanged = unchanged.then(batch.cost);
            if !batch.is_kept_by(changed) && unchanged.at <= batch.deadline {
                return Some((index, unchanged));
            }
        }
        None
    }

    /// Whether all on it can wait for something else to run first.
    pub(super) fn can_wait(&self, begin: Outlook, cost: Cost) -> bool {
        self.first_harmed(0, begin.then(cost), begin).is_none()
    }

    /// Takes in one more request at a spot that was found just now.
    pub(super) fn take_in(&mut self, newcomer: Newcomer, spot: Spot) {
        let Newcomer { place, deadline, certainty, .. } = newcomer;
        let new = |cost| {
            let before = Work::default();
            let is_paused = false;
            Upcoming { place, is_paused, count: 1, deadline, cost, certainty, before }
        };
        match spot {
            Spot::Joined(index, cost) => {
                let batch = &mut self.upcoming[index];
                batch.count += 1;
                batch.deadline = batch.deadline.min(deadline);
                batch.cost = cost;
                self.count(index);
            }
            Spot::New(index, cost) => {
                self.upcoming.insert(index, new(cost));
                self.count(index);
            }
            Spot::Interrupting { own, .. } => {
                self.upcoming.insert(0, new(own));
                self.count(0);
            }
        }
    }

    /// Whether all would be as surely in time, or were late before, if the first batch and a later one cost something
    /// else.
    pub(super) fn tolerates(
        &self,
        begin: Outlook,
        first: Cost,
        (later, later_cost): (usize, Cost),
    ) -> bool {
        let (mut changed, mut unchanged) = (begin, begin);
        self.upcoming.iter().enumerate().all(|(index, batch)| {
            let cost = match index {
                0 => first,
                _ if index == later => later_cost,
                _ => batch.cost,
            };
            changed = changed.then(cost);
            unchanged = unchanged.then(batch.cost);
            let is_worse = changed.at > unchanged.at;
            !is_worse || batch.is_kept_by(changed)
        })
    }

    /// Whether all would be as surely in time, or were late before, if some batches ran together before all others, at one cost,
    /// and it began at another instant.
    pub(super) fn tolerates_together(
        &self,
        mut unchanged: Outlook,
        begin: Outlook,
        together: &[usize],
        cost: Cost,
    ) -> bool {
        let joined = begin.then(cost);
        let mut after = joined;
        self.upcoming.iter().enumerate().all(|(index, batch)| {
            unchanged = unchanged.then(batch.cost);
            let changed = match together.contains(&index) {
                true => joined,
                false => {
                    after = after.then(batch.cost);
                    after
                }
            };
            let is_worse = changed.at > unchanged.at;
            !is_worse || batch.is_kept_by(changed)
        })
    }

    /// Cuts the first batch to its first `count` requests and puts the others behind those that are due before them.
    pub(super) fn split_first(&mut self, count: u32, kept: (Time, Cost), cut: (Time, Cost)) {
        let first = &mut self.upcoming[0];
        let rest = Upcoming { count: first.count - count, deadline: cut.0, cost: cut.1, ..*first };
        (first.count, first.deadline, first.cost) = (count, kept.0, kept.1);
        let is_after = |batch: &Upcoming| batch.is_of(rest.place) || batch.deadline > rest.deadline;
        let index =
            1 + self.upcoming[1..].iter().position(is_after).unwrap_or(self.upcoming.len() - 1);
        self.upcoming.insert(index, rest);
    }
}
