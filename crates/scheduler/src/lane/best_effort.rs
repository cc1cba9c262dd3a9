//! Best-effort requests: they have no deadline, so they are on no agenda and yield to all that is.
//!
//! # The rule
//!
//! They run when no request with a deadline waits, the models among them by weight: the one that has had the least time for
//! its weight comes first, and members of its group fill the batch in the same order. Since a request with a deadline may come at any moment, their batches take no longer than
//! [`BLOCKING`] of the tightest objective in the lane, or are single requests.
//!
//! They do not starve where there is always something else to do: while they wait, [`LEAST_SHARE`] of the time that others
//! take is owed to them. Once a batch is owed, whoever comes is admitted as if that batch ran first; so within one
//! objective there is room for it that no promise needs, and it runs as soon as there is.

use std::collections::VecDeque;

use super::cost;
use super::lane_model::LaneModel;
use super::outlook::Cost;
use crate::identity::ModelId;
use crate::lane::BatchLatency;
use crate::request::Request;
use crate::time::Span;

/// The share of the tightest objective in the lane that best effort may block it for.
const BLOCKING: f64 = 0.25;
/// The share of a busy lane that best effort gets in any case.
pub(super) const LEAST_SHARE: f64 = 0.02;

/// One model's requests without a deadline, in the order of arrival.
#[derive(Clone, Debug)]
struct Queue {
    model: ModelId,
    /// Models with the same place share batches.
    place: usize,
    requests: VecDeque<Request>,
    weight: f64,
    /// The time that it has had, over its weight.
    had: f64,
}

/// Requests without a deadline, by their model's number as a member of the lane.
#[derive(Clone, Debug)]
pub(super) struct BestEffort {
    queues: Vec<Queue>,
    waiting: usize,
    /// The longest that a batch of several may take.
    longest: Span,
    /// What the one that was served last has had: who has had nothing for long does not catch up on it.
    level: f64,
    owed_ns: f64,
    /// What is kept free for a batch that is owed.
    pub(super) set_aside: Option<Cost>,
}

impl BestEffort {
    /// For models that share batches where they have the same place.
    pub(super) fn new(models: &[LaneModel], places: Vec<usize>) -> Self {
        let queue = |(model, place): (&LaneModel, usize)| Queue {
            model: model.model,
            place,
            requests: VecDeque::new(),
            weight: model.weight.max(f64::MIN_POSITIVE),
            had: 0.0,
        };
        let tightest = models.iter().filter_map(|model| model.slo).min();
        Self {
            queues: models.iter().zip(places).map(queue).collect(),
            waiting: 0,
            longest: tightest.map_or(Span::MAX, |slo| slo * BLOCKING),
            level: 0.0,
            owed_ns: 0.0,
            set_aside: None,
        }
    }

    pub(super) fn put(&mut self, member: usize, request: Request) {
        let queue = &mut self.queues[member];
        if queue.requests.is_empty() {
            queue.had = queue.had.max(self.level);
        }
        queue.requests.push_back(request);
        self.waiting += 1;
    }

    /// The last request of a member has never come.
    pub(super) fn take_back(&mut self, member: usize) {
        self.queues[member].requests.pop_back();
        self.waiting -= 1;
    }

    pub(super) fn take_all(&mut self) -> Vec<Request> {
        (self.waiting, self.owed_ns, self.set_aside) = (0, 0.0, None);
        self.queues.iter_mut().flat_map(|queue| queue.requests.drain(..)).collect()
    }

    /// The place that is next, how many of its requests run and what that costs.
    pub(super) fn upcoming(&self, latency: &impl BatchLatency) -> Option<(usize, u32, Cost)> {
        if self.waiting == 0 {
            return None;
        }
        let next = &self.queues[self.next(|_| true)?];
        let mates = self.queues.iter().filter(|other| other.place == next.place);
        let waiting: usize = mates.map(|mate| mate.requests.len()).sum();
        let most = latency.largest_batch(next.model).min(waiting as u32);
        let fits = |count: &u32| latency.of(next.model, *count) <= self.longest;
        let count = (2..=most).rev().find(fits).unwrap_or(1);
        Some((next.place, count, cost(latency, next.model, count)))
    }

    /// The member among some that has had the least time for its weight, of those that wait.
    fn next(&self, is_meant: impl Fn(&Queue) -> bool) -> Option<usize> {
        let waits = |queue: &Queue| !queue.requests.is_empty() && is_meant(queue);
        let waiting = self.queues.iter().enumerate().filter(|(_, queue)| waits(queue));
        let next = waiting.min_by(|(_, one), (_, other)| one.had.total_cmp(&other.had));
        next.map(|(member, _)| member)
    }

    /// Takes out so many requests of a place, which are launched at this cost.
    pub(super) fn take(&mut self, place: usize, count: u32, cost: Cost) -> Vec<Request> {
        let taken_ns = cost.duration.nanos() as f64;
        self.owed_ns = (self.owed_ns - taken_ns).max(0.0);
        self.set_aside = None;
        let first = self.next(|queue| queue.place == place);
        self.level = first.map_or(self.level, |member| self.queues[member].had);
        let mut requests = Vec::with_capacity(count as usize);
        while requests.len() < count as usize
            && let Some(member) = self.next(|queue| queue.place == place)
        {
            let queue = &mut self.queues[member];
            queue.had += taken_ns / f64::from(count) / queue.weight;
            requests.extend(queue.requests.pop_front());
        }
        self.waiting -= requests.len();
        requests
    }

    /// Others take time of the lane.
    pub(super) fn yield_for(&mut self, duration: Span) {
        if self.waiting > 0 {
            self.owed_ns += LEAST_SHARE * duration.nanos() as f64;
        }
    }

    /// Sets time aside for what is next, once it is owed.
    pub(super) fn set_aside_what_is_owed(&mut self, latency: &impl BatchLatency) {
        let is_owed = |cost: &Cost| self.owed_ns >= cost.duration.nanos() as f64;
        self.set_aside = self.upcoming(latency).map(|(_, _, cost)| cost).filter(is_owed);
    }

    /// About how long all that waits and one more request of a model take: as if all were of that model.
    pub(super) fn work(&self, model: ModelId, latency: &impl BatchLatency) -> Span {
        let largest = latency.largest_batch(model).max(1);
        let batches = (self.waiting / largest as usize) as f64;
        latency.of(model, 1) + latency.of(model, largest) * batches
    }
}
