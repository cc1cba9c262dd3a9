//! What is launched next: the first batch of the agenda, at the size that serves all who wait best.

use super::agenda::{Agenda, Upcoming};
use super::interruption::Occupant;
use super::outlook::{Cost, Outlook};
use super::queues::Queue;
use super::{Lane, cost, earliest};
use crate::identity::{MixId, ModelId};
use crate::lane::BatchLatency;
use crate::request::Request;
use crate::time::{Span, Time};

/// How many batches are looked at when someone will be late: what the first of them does to those behind is seen by then.
const LOOK_AHEAD: usize = 128;

/// A batch to be launched now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The model of its first request; the others may be those of other members of its group, or of the mix.
    pub model: ModelId,
    /// The mix that they are all of.
    pub mix: Option<MixId>,
    /// Whose requests, in the order in which they waited.
    pub requests: Vec<Request>,
    /// How long it is predicted to take.
    pub expected: Span,
}

/// What is done about the first batch of the agenda.
enum Choice {
    /// Its first requests, so many, are launched.
    Launch(u32),
    /// Its first request is dropped, and the choice made anew.
    ShedFirst,
}

impl Lane {
    /// The next batch, where anything waits: the first of the agenda, or best effort where that is empty, or can wait while
    /// best effort is owed a turn. As a rule all who are in the batch make their deadline, and all who wait for it do; then
    /// it takes along as many more of its queue as harm no one. Where durations strayed so far that someone will be late, it
    /// is cut such that the fewest are. Requests that are given up are handed to `shed`. There is none where what is paused
    /// comes [next](Lane::resume).
    pub fn next(
        &mut self,
        now: Time,
        latency: &impl BatchLatency,
        shed: impl FnMut(Request),
    ) -> Option<Batch> {
        let batch = self.take_next(now, latency, shed);
        self.agenda.count(0);
        batch
    }

    fn take_next(
        &mut self,
        now: Time,
        latency: &impl BatchLatency,
        mut shed: impl FnMut(Request),
    ) -> Option<Batch> {
        let queues = &self.queues;
        self.shares.divide(now, latency, || queues.waiting());
        for batch in self.agenda.upcoming.iter_mut().filter(|batch| !batch.is_paused) {
            let model = self.queues[batch.place].model;
            batch.cost = cost(latency, model, batch.count);
            batch.certainty = latency.certainty(model);
        }
        self.best_effort.set_aside_what_is_owed(latency);
        if let Some(cost) = self.best_effort.set_aside
            && !self.has_paused()
            && !self.owes_a_mix(now, latency)
            && self.agenda.can_wait(Outlook::from(now, 0.0), cost)
        {
            return self.launch_best_effort(now, latency);
        }
        loop {
            match self.agenda.upcoming.first() {
                None => return self.launch_best_effort(now, latency),
                Some(first) if first.is_paused => return None,
                Some(_) => {}
            }
            if let Some(mix) = self.mix_next(now, latency) {
                return Some(self.launch_mix(mix, now));
            }
            match self.choice(now, latency) {
                Choice::Launch(count) => return Some(self.launch(count, now, latency)),
                Choice::ShedFirst => shed(self.drop_first(latency)),
            }
        }
    }

    fn choice(&mut self, now: Time, latency: &impl BatchLatency) -> Choice {
        let first = self.agenda.upcoming[0];
        let Queue { model, requests: queue, .. } = &self.queues[first.place];
        let most_urgent = queue[0].deadline;
        let alone = latency.of(*model, 1);
        if now + alone > most_urgent {
            return Choice::ShedFirst;
        }
        let near = &self.agenda.upcoming[..self.agenda.upcoming.len().min(LOOK_AHEAD)];
        let (mut fewest, mut best) = (self.lost(near, 0, now), first.count);
        if fewest == 0 {
            self.grow_first(now, latency);
            return Choice::Launch(self.agenda.upcoming[0].count);
        }
        for count in (1..first.count).rev() {
            let lost = self.lost(&self.cut(near, count, latency).upcoming, 0, now);
            if lost < fewest {
                (fewest, best) = (lost, count);
            }
        }
        let mut without = near.to_vec();
        without[0] = self.without_first_request(first, latency);
        match 1 + self.lost(&without, 1, now) < fewest {
            true => Choice::ShedFirst,
            false => Choice::Launch(best),
        }
    }

    /// How many requests of these batches would be late, if all went as predicted and so many requests of the first batch's
    /// queue were dropped.
    fn lost(&self, batches: &[Upcoming], dropped: usize, now: Time) -> usize {
        let mut at = now;
        let mut lost = 0;
        for (index, batch) in batches.iter().enumerate() {
            at = at + batch.cost.duration;
            if at > batch.deadline && batch.is_paused {
                lost += batch.count as usize;
            } else if at > batch.deadline {
                let own = batches[..index].iter().filter(|own| own.is_of(batch.place));
                let before = own.map(|own| own.count as usize).sum::<usize>();
                let dropped = if batch.place == batches[0].place { dropped } else { 0 };
                let requests = self.queues[batch.place].requests.iter().skip(before + dropped);
                let late = requests.take(batch.count as usize).filter(|late| at > late.deadline);
                lost += late.count();
            }
        }
        lost
    }

    /// These batches with the first cut to `count` requests.
    fn cut(&self, batches: &[Upcoming], count: u32, latency: &impl BatchLatency) -> Agenda {
        let first = batches[0];
        let Queue { model, requests: queue, .. } = &self.queues[first.place];
        let part = |from: u32, count: u32| {
            (earliest(queue, from as usize, count as usize), cost(latency, *model, count))
        };
        let mut agenda = Agenda { upcoming: batches.to_vec() };
        agenda.split_first(count, part(0, count), part(count, first.count - count));
        agenda
    }

    /// The first batch of the agenda without the request that is first in it; perhaps empty.
    fn without_first_request(&self, first: Upcoming, latency: &impl BatchLatency) -> Upcoming {
        let Queue { model, requests: queue, .. } = &self.queues[first.place];
        let count = first.count - 1;
        let deadline = earliest(queue, 1, count as usize);
        Upcoming { count, deadline, cost: cost(latency, *model, count), ..first }
    }

    /// Takes requests of later batches of the same queue into the first, while no one is less surely in time for it.
    fn grow_first(&mut self, now: Time, latency: &impl BatchLatency) {
        let begin = Outlook::from(now, 0.0);
        loop {
            let first = self.agenda.upcoming[0];
            let Queue { model, first: member, requests: queue, .. } = &self.queues[first.place];
            if first.count >= latency.largest_batch(*model) {
                return;
            }
            let is_next = |batch: &Upcoming| batch.is_of(first.place);
            let Some(next) = self.agenda.upcoming[1..].iter().position(is_next) else { return };
            let index = next + 1;
            let later = self.agenda.upcoming[index];
            let grown = cost(latency, *model, first.count + 1);
            if grown.duration > self.shares.longest(*member) {
                return;
            }
            let shrunk = cost(latency, *model, later.count - 1);
            if !self.agenda.tolerates(begin, grown, (index, shrunk)) {
                return;
            }
            let moved = queue[first.count as usize].deadline;
            let left = earliest(queue, first.count as usize + 1, later.count as usize - 1);
            let upcoming = &mut self.agenda.upcoming;
            upcoming[0].count += 1;
            upcoming[0].cost = grown;
            upcoming[0].deadline = first.deadline.min(moved);
            upcoming[index].count -= 1;
            upcoming[index].cost = shrunk;
            upcoming[index].deadline = left;
            if later.count == 1 {
                upcoming.remove(index);
            }
        }
    }

    fn launch_best_effort(&mut self, now: Time, latency: &impl BatchLatency) -> Option<Batch> {
        let Some((place, count, cost)) = self.best_effort.upcoming(latency) else {
            self.set_busy_until(now);
            return None;
        };
        let requests = self.best_effort.take(place, count, cost);
        self.waiting -= requests.len();
        self.set_busy_with(cost, now);
        let (deadline, certainty) = (Time::NEVER, 0.0);
        self.occupant = Some(Occupant { deadline, certainty, place, requests: count });
        Some(Batch { model: requests[0].model, mix: None, requests, expected: cost.duration })
    }

    pub(super) fn set_busy_with(&mut self, cost: Cost, now: Time) {
        (self.busy_until, self.busy_deviation_ns) = (now + cost.duration, cost.deviation_ns);
    }

    fn launch(&mut self, count: u32, now: Time, latency: &impl BatchLatency) -> Batch {
        if count < self.agenda.upcoming[0].count {
            self.agenda = self.cut(&self.agenda.upcoming, count, latency);
        }
        let first = self.agenda.upcoming.remove(0);
        let queue = &mut self.queues[first.place].requests;
        let requests: Vec<Request> = queue.drain(..count as usize).collect();
        self.waiting -= requests.len();
        let members = requests.iter().filter_map(|request| self.queues.member(request.model));
        self.shares.observe_launch(members.collect(), first.cost.duration);
        self.best_effort.yield_for(first.cost.duration);
        self.set_busy_with(first.cost, now);
        let Upcoming { place, deadline, certainty, .. } = first;
        requests.iter().for_each(|request| self.note_apart(place, request.arrived));
        self.occupant = Some(Occupant { deadline, certainty, place, requests: count });
        let (model, expected) = (requests[0].model, first.cost.duration);
        Batch { model, mix: None, requests, expected }
    }

    /// Takes out the request that is first in the order of running.
    fn drop_first(&mut self, latency: &impl BatchLatency) -> Request {
        let first = self.without_first_request(self.agenda.upcoming[0], latency);
        let dropped = self.queues[first.place].requests.pop_front();
        dropped.iter().for_each(|request| self.note_apart(first.place, request.arrived));
        self.waiting -= 1;
        match first.count {
            0 => drop(self.agenda.upcoming.remove(0)),
            _ => self.agenda.upcoming[0] = first,
        }
        dropped.expect("a batch on the agenda has requests")
    }
}
