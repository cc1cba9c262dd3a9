//! Clockwork: one batch at a time on the whole device, whichever must start first to be in time.
//!
//! After Gujarati et al., "Serving DNNs like Clockwork: Performance Predictability from the Bottom Up", OSDI 2020. Each
//! request has a strategy for every batch size that it could run in: the latest start at which that batch is still in time
//! for it. Whenever the device is free, the strategy with the earliest latest start runs that is still possible and has
//! enough requests. How long batches take is the worst of the last few measurements.
//!
//! It differs from time sharing in three ways. Order is by latest start, so that of two requests with one deadline the one
//! that takes longer goes first. At the door a request is refused only where it would be late even as the next to run; what
//! waits before it is not counted, and what becomes hopeless later is dropped. And older requests are given up for a larger
//! batch of younger ones where both cannot be had.

use std::collections::VecDeque;

use crate::policies::whole_device::{Running, WholeDevice};
use crate::policy::{Action, Event, Policy, Refusal};
use crate::request::Request;
use crate::served::{ServedDevice, ServedModel};
use crate::time::{Span, Time};

/// How many measurements of a model are remembered; the worst of them is what is expected.
const MEASUREMENTS: usize = 10;

/// The most requests of one model that may wait.
const QUEUE_LIMIT: usize = 10_000;

/// The batch that must start first runs first.
pub struct Clockwork {
    whole: WholeDevice,
    models: Vec<Model>,
}

/// One model's requests and latencies.
struct Model {
    /// By deadline.
    queue: VecDeque<Request>,
    /// As profiled, by batch size less one.
    profiled: Vec<Span>,
    /// Measured over profiled, the latest last.
    measured: VecDeque<f64>,
    /// The worst of these.
    worst: f64,
}

/// A batch that could run next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Strategy {
    latest_start: Time,
    place: usize,
    /// How many of the first requests would be late and are given up.
    skipped: usize,
    batch: usize,
}

impl Clockwork {
    /// On a device with its models.
    pub fn new(device: ServedDevice) -> Self {
        let models = device.models.iter().map(|model| Model::new(model, device.units)).collect();
        Self { whole: WholeDevice::new(&device), models }
    }

    /// Takes in requests of one model that came together, which are due together.
    fn arrive(&mut self, requests: &[Request], now: Time, actions: &mut Vec<Action>) {
        let Some(first) = requests.first() else { return };
        let model = &mut self.models[first.model.index()];
        let soonest = self.whole.free_at(now) + model.latency(1);
        let why = if requests.iter().any(|request| soonest > request.deadline) {
            Refusal::TooLate { predicted: soonest.since(first.arrived) }
        } else if model.queue.len() + requests.len() > QUEUE_LIMIT {
            Refusal::QueueFull
        } else {
            return requests.iter().for_each(|&request| model.put(request));
        };
        let refuse = |request: &Request| Action::Refuse { request: request.id, why };
        actions.extend(requests.iter().map(refuse));
    }

    fn launch(&mut self, now: Time, actions: &mut Vec<Action>) {
        if !self.whole.is_free() {
            return;
        }
        for model in &mut self.models {
            model.drop_hopeless(now, actions);
        }
        let strategies = self.models.iter().enumerate();
        let first = strategies.filter_map(|(place, model)| model.strategy(place, now)).min();
        let Some(Strategy { place, skipped, batch, .. }) = first else { return };
        let model = &mut self.models[place];
        let given_up = model.queue.drain(..skipped);
        actions.extend(given_up.map(|request| Action::Shed(request.id)));
        let requests: Vec<Request> = model.queue.drain(..batch).collect();
        self.whole.launch(&requests, model.latency(batch), now, actions);
    }
}

impl Model {
    fn new(model: &ServedModel, units: u32) -> Self {
        let batches = 1..=model.largest_batch();
        Self {
            queue: VecDeque::new(),
            profiled: batches.map(|batch| model.profile.latency(batch, units)).collect(),
            measured: VecDeque::new(),
            worst: 1.0,
        }
    }

    fn latency(&self, batch: usize) -> Span {
        self.profiled[batch - 1] * self.worst
    }

    fn observe(&mut self, ended: &Running, now: Time) {
        let profiled = self.profiled[ended.batch as usize - 1];
        if self.measured.len() == MEASUREMENTS {
            self.measured.pop_front();
        }
        self.measured.push_back(now.since(ended.started).us() / profiled.us());
        self.worst = self.measured.iter().copied().fold(0.0, f64::max);
    }

    fn put(&mut self, request: Request) {
        let after = self.queue.partition_point(|other| other.deadline <= request.deadline);
        self.queue.insert(after, request);
    }

    /// Drops requests that are late even if they run alone and now.
    fn drop_hopeless(&mut self, now: Time, actions: &mut Vec<Action>) {
        let soonest = now + self.latency(1);
        let late = self.queue.partition_point(|request| request.deadline < soonest);
        actions.extend(self.queue.drain(..late).map(|request| Action::Shed(request.id)));
    }

    /// The strategy that must start first of those that are possible: as large a batch as waits from some request on, in
    /// time for that one, which is the oldest where this is so.
    fn strategy(&self, place: usize, now: Time) -> Option<Strategy> {
        let waiting = self.queue.len();
        (0..waiting).find_map(|skipped| {
            let batch = (waiting - skipped).min(self.profiled.len());
            let (deadline, latency) = (self.queue[skipped].deadline, self.latency(batch));
            let latest_start = Time::START + deadline.since(Time::START).saturating_sub(latency);
            let is_possible = now <= latest_start;
            is_possible.then_some(Strategy { latest_start, place, skipped, batch })
        })
    }
}

impl Policy for Clockwork {
    fn name(&self) -> &'static str {
        "clockwork"
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        match event {
            Event::Started => self.whole.prepare(actions),
            Event::Prepared(_) => self.whole.activate(actions),
            Event::Arrived(request) => self.arrive(&[request], now, actions),
            Event::ArrivedTogether(requests) => self.arrive(&requests, now, actions),
            Event::Begun(launch) | Event::Thinned(launch) => self.whole.teaches_nothing(launch),
            Event::Finished(launch) => {
                if let Some(ended) = self.whole.finish(launch)
                    && !ended.teaches_nothing
                {
                    self.models[ended.model.index()].observe(&ended, now);
                }
            }
            Event::Unprepared(_)
            | Event::Planned(_)
            | Event::Unplanned
            | Event::Regulated { .. }
            | Event::Woken => {}
        }
        self.launch(now, actions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::ModelId;
    use crate::policies::random_devices::device_with;
    use crate::policy::{LaunchId, PartitionId};
    use crate::request::RequestId;

    /// One item takes a millisecond, and every further one half of that.
    struct Device(Clockwork);

    impl Device {
        fn new(models: usize) -> Self {
            let device = device_with(&vec![(1.0, 100.0); models], 1);
            let mut device = Self(Clockwork::new(device));
            device.react(Event::Started, 0.0);
            device.react(Event::Prepared(PartitionId(0)), 0.0);
            device
        }

        fn react(&mut self, event: Event, ms: f64) -> Vec<Action> {
            let mut actions = Vec::new();
            self.0.react(event, at(ms), &mut actions);
            actions
        }

        fn arrive(
            &mut self,
            id: u64,
            model: u32,
            arrived_ms: f64,
            deadline_ms: f64,
        ) -> Vec<Action> {
            let request = Request {
                id: RequestId(id),
                model: ModelId(model),
                arrived: at(arrived_ms),
                deadline: at(deadline_ms),
            };
            self.react(Event::Arrived(request), arrived_ms)
        }

        fn finish(&mut self, launch: u64, ms: f64) -> Vec<Action> {
            self.react(Event::Finished(LaunchId(launch)), ms)
        }
    }

    fn at(ms: f64) -> Time {
        Time::START + Span::from_us(ms * 1e3)
    }

    fn launched(actions: &[Action]) -> Vec<u64> {
        let requests = actions.iter().filter_map(|action| match action {
            Action::Launch { requests, .. } => Some(requests),
            _ => None,
        });
        requests.flatten().map(|request| request.0).collect()
    }

    fn shed(actions: &[Action]) -> Vec<u64> {
        let ids = actions.iter().filter_map(|action| match action {
            Action::Shed(request) => Some(request.0),
            _ => None,
        });
        ids.collect()
    }

    #[test]
    fn of_two_with_one_deadline_the_batch_that_takes_longer_runs_first() {
        let mut device = Device::new(3);
        assert_eq!(launched(&device.arrive(0, 2, 0.0, 50.0)), [0]);
        device.arrive(1, 0, 0.1, 20.0);
        for id in 2..6 {
            device.arrive(id, 1, 0.1, 20.0);
        }
        assert_eq!(launched(&device.finish(0, 1.0)), [2, 3, 4, 5]);
        assert_eq!(launched(&device.finish(1, 3.5)), [1]);
    }

    #[test]
    fn the_oldest_is_given_up_where_it_stands_in_the_way_of_a_larger_batch() {
        let mut device = Device::new(2);
        device.arrive(0, 1, 0.0, 50.0);
        device.arrive(1, 0, 0.1, 2.8);
        for id in 2..6 {
            device.arrive(id, 0, 0.2, 9.0);
        }
        // Five items end at 4.0 and four at 3.5; the oldest is due at 2.8.
        let actions = device.finish(0, 1.0);
        assert_eq!((shed(&actions), launched(&actions)), (vec![1], vec![2, 3, 4, 5]));
    }

    #[test]
    fn only_the_hopeless_are_refused_and_what_becomes_hopeless_is_dropped() {
        let mut device = Device::new(1);
        device.arrive(0, 0, 0.0, 50.0);
        let refused = device.arrive(1, 0, 0.0, 1.9);
        let why = Refusal::TooLate { predicted: Span::from_us(2000.0) };
        assert_eq!(refused, [Action::Refuse { request: RequestId(1), why }]);
        assert_eq!(device.arrive(2, 0, 0.0, 2.5), []);
        assert_eq!(shed(&device.finish(0, 1.8)), [2]);
    }

    #[test]
    fn the_worst_of_the_last_measurements_is_expected() {
        let mut device = Device::new(1);
        let mut expected = |id: u64, now: f64, took: f64| {
            device.arrive(id, 0, now, now + 90.0);
            let running = device.0.whole.free_at(at(now)).since(at(now));
            device.finish(id, now + took);
            running.us()
        };
        assert_eq!(expected(0, 0.0, 3.0), 1000.0);
        for id in 1..=10 {
            assert_eq!(expected(id, id as f64 * 10.0, 2.0), 3000.0);
        }
        assert_eq!(expected(11, 200.0, 2.0), 2000.0, "the slow one is forgotten");
    }
}
