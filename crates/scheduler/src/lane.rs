//! A lane: the queue of one partition. It orders requests by deadline, gathers batches, predicts and refuses.

use std::collections::VecDeque;

use crate::identity::ModelId;
use crate::policy::Refusal;
use crate::request::Request;
use crate::time::{Span, Time};

/// How long a batch of a model takes on the lane's partition.
pub trait BatchLatency {
    /// The predicted duration of a batch of one or more items.
    fn of(&self, model: ModelId, batch: u32) -> Span;

    /// The largest batch that the model may run at; at least 1.
    fn largest_batch(&self, model: ModelId) -> u32;
}

/// A batch to be launched now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// What runs.
    pub model: ModelId,
    /// Whose requests, by deadline.
    pub requests: Vec<Request>,
    /// How long it is predicted to take.
    pub expected: Span,
}

/// The requests that wait for one partition.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The models that run here and their requests, by model; each in the order of arrival, which is that of deadlines
    /// where a model has one SLO.
    queues: Vec<(ModelId, VecDeque<Request>)>,
    waiting: usize,
    limit: usize,
    /// When what runs is predicted to end.
    busy_until: Time,
}

impl Lane {
    /// An empty lane for these models that holds at most `limit` requests.
    pub fn new(models: impl IntoIterator<Item = ModelId>, limit: usize) -> Self {
        let mut queues: Vec<(ModelId, VecDeque<Request>)> =
            models.into_iter().map(|model| (model, VecDeque::new())).collect();
        queues.sort_by_key(|(model, _)| *model);
        queues.dedup_by_key(|(model, _)| *model);
        Self { queues, waiting: 0, limit, busy_until: Time::START }
    }

    fn place(&self, model: ModelId) -> Option<usize> {
        self.queues.binary_search_by_key(&model, |(other, _)| *other).ok()
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// When the partition is predicted to be free.
    pub fn free_at(&self, now: Time) -> Time {
        self.busy_until.max(now)
    }

    /// What runs will not end before this.
    pub fn set_busy_until(&mut self, at: Time) {
        self.busy_until = at;
    }

    /// Takes out all that waits.
    pub fn take_waiting(&mut self) -> Vec<Request> {
        self.waiting = 0;
        self.queues.iter_mut().flat_map(|(_, queue)| queue.drain(..)).collect()
    }

    /// Takes in a request that was accepted before, elsewhere; its model must run here.
    pub fn put(&mut self, request: Request) {
        let place = self.place(request.model).expect("the model runs here");
        let queue = &mut self.queues[place].1;
        let after = queue.partition_point(|other| other.deadline <= request.deadline);
        queue.insert(after, request);
        self.waiting += 1;
    }

    /// Takes in a request that [`Lane::predicted_finish`] predicts to be answered at `finish`, or says why not: it would be
    /// late, there is no room, or its model does not run here.
    pub fn admit(&mut self, request: Request, finish: Time) -> Result<(), Refusal> {
        let place = self.place(request.model).ok_or(Refusal::NotServed)?;
        if self.waiting >= self.limit {
            return Err(Refusal::QueueFull);
        }
        if finish > request.deadline {
            return Err(Refusal::TooLate { predicted: finish.since(request.arrived) });
        }
        self.queues[place].1.push_back(request);
        self.waiting += 1;
        Ok(())
    }

    /// When a request would be answered if it came now: after what runs, after every batch of another model whose
    /// deadline is earlier, and with those of its own model before it. What waits is counted in the batches that it will
    /// run in.
    pub fn predicted_finish(
        &self,
        request: &Request,
        now: Time,
        latency: &impl BatchLatency,
    ) -> Time {
        let mut finish = self.free_at(now);
        for &(model, ref queue) in &self.queues {
            let is_own = model == request.model;
            let before = match is_own {
                true => queue.len() + 1,
                false => queue.partition_point(|other| other.deadline <= request.deadline),
            };
            finish = finish + batches_latency(model, before, latency);
        }
        finish
    }

    /// The next batch, where anything waits: of the model whose first request is due first, as many requests as all make
    /// their deadline together. Requests that cannot make it even alone are handed to `shed`.
    pub fn next(
        &mut self,
        now: Time,
        latency: &impl BatchLatency,
        mut shed: impl FnMut(Request),
    ) -> Option<Batch> {
        loop {
            let place = self.most_urgent()?;
            let (model, queue) = &mut self.queues[place];
            let model = *model;
            let first = *queue.front()?;
            if now + latency.of(model, 1) > first.deadline {
                queue.pop_front();
                self.waiting -= 1;
                shed(first);
                continue;
            }
            let most = (latency.largest_batch(model) as usize).min(queue.len());
            let fits = |size: usize| now + latency.of(model, size as u32) <= first.deadline;
            let size = (1..=most).rev().find(|&size| fits(size)).unwrap_or(1);
            let requests: Vec<Request> = queue.drain(..size).collect();
            self.waiting -= size;
            let expected = latency.of(model, size as u32);
            self.busy_until = now + expected;
            return Some(Batch { model, requests, expected });
        }
    }

    /// The place of the model whose first request is due first.
    fn most_urgent(&self) -> Option<usize> {
        let heads = self.queues.iter().enumerate().filter_map(|(place, (_, queue))| {
            queue.front().map(|first| (first.deadline, first.arrived, place))
        });
        heads.min().map(|(_, _, place)| place)
    }
}

/// The time of so many items in batches as large as they may be.
fn batches_latency(model: ModelId, items: usize, latency: &impl BatchLatency) -> Span {
    if items == 0 {
        return Span::ZERO;
    }
    let largest = latency.largest_batch(model).max(1) as usize;
    let (full, rest) = (items / largest, items % largest);
    let mut total = latency.of(model, largest as u32) * full as f64;
    if rest > 0 {
        total += latency.of(model, rest as u32);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::RequestId;

    /// Ten microseconds for a launch and one for each item.
    struct Simple;

    impl BatchLatency for Simple {
        fn of(&self, _: ModelId, batch: u32) -> Span {
            Span::from_us(10.0 + f64::from(batch))
        }

        fn largest_batch(&self, _: ModelId) -> u32 {
            4
        }
    }

    fn at(us: f64) -> Time {
        Time::START + Span::from_us(us)
    }

    fn request(id: u64, model: u32, arrived: f64, deadline: f64) -> Request {
        Request {
            id: RequestId(id),
            model: ModelId(model),
            arrived: at(arrived),
            deadline: at(deadline),
        }
    }

    fn admit(lane: &mut Lane, request: Request, now: Time) -> Result<(), Refusal> {
        let finish = lane.predicted_finish(&request, now, &Simple);
        lane.admit(request, finish)
    }

    fn ids(batch: &Batch) -> Vec<u64> {
        batch.requests.iter().map(|request| request.id.0).collect()
    }

    #[test]
    fn the_most_urgent_model_runs_first_in_as_large_a_batch_as_its_deadline_allows() {
        let mut lane = Lane::new([ModelId(0), ModelId(1)], 100);
        for id in 0..6 {
            admit(&mut lane, request(id, 0, 0.0, 100.0), at(0.0)).unwrap();
        }
        admit(&mut lane, request(9, 1, 0.0, 60.0), at(0.0)).unwrap();
        let none = |_| panic!("nothing is late");
        let first = lane.next(at(0.0), &Simple, none).unwrap();
        assert_eq!((first.model, ids(&first)), (ModelId(1), vec![9]));
        let second = lane.next(at(11.0), &Simple, none).unwrap();
        assert_eq!(ids(&second), [0, 1, 2, 3]);
        let tight = lane.next(at(88.5), &Simple, none).unwrap();
        assert_eq!(ids(&tight), [4], "two would end at 100.5");
    }

    #[test]
    fn what_would_be_late_is_refused_with_the_prediction() {
        let mut lane = Lane::new([ModelId(0)], 100);
        for id in 0..4 {
            admit(&mut lane, request(id, 0, 0.0, 50.0), at(0.0)).unwrap();
        }
        // A batch of four takes 14, and a fifth item another 11.
        let refused = admit(&mut lane, request(4, 0, 0.0, 24.0), at(0.0));
        assert_eq!(refused, Err(Refusal::TooLate { predicted: Span::from_us(25.0) }));
        assert_eq!(lane.waiting(), 4);
        let mut short = Lane::new([ModelId(0)], 1);
        admit(&mut short, request(0, 0, 0.0, 50.0), at(0.0)).unwrap();
        let refused = admit(&mut short, request(1, 0, 0.0, 50.0), at(0.0));
        assert_eq!(refused, Err(Refusal::QueueFull));
        let refused = admit(&mut short, request(1, 7, 0.0, 50.0), at(0.0));
        assert_eq!(refused, Err(Refusal::NotServed));
    }

    #[test]
    fn a_request_whose_time_has_passed_costs_no_turn() {
        let mut lane = Lane::new([ModelId(0)], 100);
        admit(&mut lane, request(0, 0, 0.0, 20.0), at(0.0)).unwrap();
        admit(&mut lane, request(1, 0, 0.0, 90.0), at(0.0)).unwrap();
        let mut shed = Vec::new();
        let batch = lane.next(at(10.0), &Simple, |request| shed.push(request.id.0)).unwrap();
        assert_eq!((shed, ids(&batch)), (vec![0], vec![1]));
        assert_eq!(lane.waiting(), 0);
        assert!(lane.next(at(10.0), &Simple, |_| ()).is_none());
    }
}
