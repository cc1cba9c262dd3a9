//! What is launched next: the first batch of the agenda, at the size that serves all who wait best.

use super::agenda::{Agenda, Upcoming};
use super::outlook::{Cost, Outlook};
use super::{Lane, cost, earliest};
use crate::identity::ModelId;
use crate::lane::BatchLatency;
use crate::request::Request;
use crate::time::{Span, Time};

/// A batch to be launched now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// What runs.
    pub model: ModelId,
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
    /// it takes along as many more of its model as harm no one. Where durations strayed so far that someone will be late, it
    /// is cut such that the fewest are. Requests that are given up are handed to `shed`.
    pub fn next(
        &mut self,
        now: Time,
        latency: &impl BatchLatency,
        mut shed: impl FnMut(Request),
    ) -> Option<Batch> {
        let queues = &self.queues;
        self.shares.divide(now, latency, |place| queues[place].1.len());
        for batch in &mut self.agenda.upcoming {
            let model = self.queues[batch.place].0;
            batch.cost = cost(latency, model, batch.count);
            batch.certainty = latency.certainty(model);
        }
        self.best_effort.set_aside_what_is_owed(latency);
        if let Some(cost) = self.best_effort.set_aside
            && self.agenda.can_wait(Outlook::from(now, 0.0), cost)
        {
            return self.launch_best_effort(now, latency);
        }
        loop {
            if self.agenda.upcoming.is_empty() {
                return self.launch_best_effort(now, latency);
            }
            match self.choice(now, latency) {
                Choice::Launch(count) => return Some(self.launch(count, now, latency)),
                Choice::ShedFirst => shed(self.drop_first(latency)),
            }
        }
    }

    fn choice(&mut self, now: Time, latency: &impl BatchLatency) -> Choice {
        let first = self.agenda.upcoming[0];
        let (model, queue) = &self.queues[first.place];
        let most_urgent = queue[0].deadline;
        let alone = latency.of(*model, 1);
        if now + alone > most_urgent {
            return Choice::ShedFirst;
        }
        let (mut fewest, mut best) = (self.lost(&self.agenda, now), first.count);
        if fewest == 0 {
            self.grow_first(now, latency);
            return Choice::Launch(self.agenda.upcoming[0].count);
        }
        for count in (1..first.count).rev() {
            let lost = self.lost(&self.cut(count, latency), now);
            if lost < fewest {
                (fewest, best) = (lost, count);
            }
        }
        let mut without = self.clone();
        without.drop_first(latency);
        match 1 + without.lost(&without.agenda, now) < fewest {
            true => Choice::ShedFirst,
            false => Choice::Launch(best),
        }
    }

    /// How many requests would be late, if all went as predicted.
    fn lost(&self, agenda: &Agenda, now: Time) -> usize {
        let mut at = now;
        let mut lost = 0;
        for (index, batch) in agenda.upcoming.iter().enumerate() {
            at = at + batch.cost.duration;
            if at > batch.deadline {
                let own = agenda.upcoming[..index].iter().filter(|own| own.place == batch.place);
                let before: u32 = own.map(|own| own.count).sum();
                let requests = self.queues[batch.place].1.iter().skip(before as usize);
                let late = requests.take(batch.count as usize).filter(|late| at > late.deadline);
                lost += late.count();
            }
        }
        lost
    }

    /// The agenda with its first batch cut to `count` requests.
    fn cut(&self, count: u32, latency: &impl BatchLatency) -> Agenda {
        let first = self.agenda.upcoming[0];
        let (model, queue) = &self.queues[first.place];
        let part = |from: u32, count: u32| {
            (earliest(queue, from as usize, count as usize), cost(latency, *model, count))
        };
        let mut agenda = self.agenda.clone();
        agenda.split_first(count, part(0, count), part(count, first.count - count));
        agenda
    }

    /// Takes requests of later batches of the same model into the first, while no one is less surely in time for it.
    fn grow_first(&mut self, now: Time, latency: &impl BatchLatency) {
        let begin = Outlook::from(now, 0.0);
        loop {
            let first = self.agenda.upcoming[0];
            let (model, queue) = &self.queues[first.place];
            let is_next = |batch: &Upcoming| batch.place == first.place;
            let Some(next) = self.agenda.upcoming[1..].iter().position(is_next) else { return };
            let index = next + 1;
            let later = self.agenda.upcoming[index];
            if first.count >= latency.largest_batch(*model) {
                return;
            }
            let grown = cost(latency, *model, first.count + 1);
            if grown.duration > self.shares.longest(first.place) {
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
        let (model, requests) = self.best_effort.take(place, count, cost);
        self.waiting -= requests.len();
        self.set_busy_with(cost, now);
        Some(Batch { model, requests, expected: cost.duration })
    }

    fn set_busy_with(&mut self, cost: Cost, now: Time) {
        (self.busy_until, self.busy_deviation_ns) = (now + cost.duration, cost.deviation_ns);
    }

    fn launch(&mut self, count: u32, now: Time, latency: &impl BatchLatency) -> Batch {
        if count < self.agenda.upcoming[0].count {
            self.agenda = self.cut(count, latency);
        }
        let first = self.agenda.upcoming.remove(0);
        let (model, queue) = &mut self.queues[first.place];
        let requests: Vec<Request> = queue.drain(..count as usize).collect();
        self.waiting -= requests.len();
        let model = *model;
        self.shares.observe_launch(first.place, first.cost.duration, requests.len());
        self.best_effort.yield_for(first.cost.duration);
        self.set_busy_with(first.cost, now);
        Batch { model, requests, expected: first.cost.duration }
    }

    /// Takes out the request that is first in the order of running.
    fn drop_first(&mut self, latency: &impl BatchLatency) -> Request {
        let first = &mut self.agenda.upcoming[0];
        let (model, queue) = &mut self.queues[first.place];
        let dropped = queue.pop_front().expect("a batch on the agenda has requests");
        self.waiting -= 1;
        first.count -= 1;
        first.cost = cost(latency, *model, first.count);
        first.deadline = earliest(queue, 0, first.count as usize);
        if first.count == 0 {
            self.agenda.upcoming.remove(0);
        }
        dropped
    }
}
