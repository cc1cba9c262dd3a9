//! Best-effort requests: they have no deadline, so they are on no agenda and yield to all that is.

use std::collections::VecDeque;

use crate::identity::ModelId;
use crate::lane::BatchLatency;
use crate::request::Request;
use crate::time::Span;

/// Requests without a deadline, by their model's place in the lane, in the order of arrival.
#[derive(Clone, Debug)]
pub(super) struct BestEffort {
    queues: Vec<VecDeque<Request>>,
    waiting: usize,
}

impl BestEffort {
    pub(super) fn new(models: usize) -> Self {
        Self { queues: vec![VecDeque::new(); models], waiting: 0 }
    }

    pub(super) fn put(&mut self, place: usize, request: Request) {
        self.queues[place].push_back(request);
        self.waiting += 1;
    }

    pub(super) fn take_all(&mut self) -> Vec<Request> {
        self.waiting = 0;
        self.queues.iter_mut().flat_map(|queue| queue.drain(..)).collect()
    }

    /// The place whose first request has waited longest.
    pub(super) fn longest_waiting(&self) -> Option<usize> {
        if self.waiting == 0 {
            return None;
        }
        let heads = self.queues.iter().enumerate();
        let heads =
            heads.filter_map(|(place, queue)| queue.front().map(|first| (first.arrived, place)));
        heads.min().map(|(_, place)| place)
    }

    /// Takes out the first requests of a place, at most so many.
    pub(super) fn take(&mut self, place: usize, most: usize) -> Vec<Request> {
        let queue = &mut self.queues[place];
        let requests: Vec<Request> = queue.drain(..most.min(queue.len())).collect();
        self.waiting -= requests.len();
        requests
    }

    /// About how long all that waits and one more request of a model take: as if all were of that model.
    pub(super) fn work(&self, model: ModelId, latency: &impl BatchLatency) -> Span {
        let largest = latency.largest_batch(model).max(1);
        let batches = (self.waiting / largest as usize) as f64;
        latency.of(model, 1) + latency.of(model, largest) * batches
    }
}
