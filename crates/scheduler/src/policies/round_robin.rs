//! Round robin: models take turns on the whole device in a fixed order, one batch each, whatever is due when.
//!
//! This is time slicing as drivers and simple servers do it, made kind: a turn is a whole batch, models with nothing to do
//! are passed over, and requests that are past their deadline already are dropped instead of run. Nothing is refused
//! but for a full queue, and nothing is predicted.

use std::collections::VecDeque;

use crate::policies::whole_device::WholeDevice;
use crate::policies::working_batch::working_batch;
use crate::policy::{Action, Event, Policy, Refusal};
use crate::request::Request;
use crate::served::ServedDevice;
use crate::time::{Span, Time};

/// The most requests of one model that may wait.
const QUEUE_LIMIT: usize = 10_000;

/// Turns in a fixed order.
pub struct RoundRobin {
    whole: WholeDevice,
    models: Vec<Turns>,
    /// Whose turn it is.
    next: usize,
}

/// One model's turns.
struct Turns {
    queue: VecDeque<Request>,
    /// By batch size less one, up to the largest that a turn takes.
    latency: Vec<Span>,
}

impl RoundRobin {
    /// On a device with its models.
    pub fn new(device: ServedDevice) -> Self {
        let models = device.models.iter().map(|model| {
            let batches = 1..=working_batch(model, device.units);
            let latency = batches.map(|batch| model.profile.latency(batch, device.units)).collect();
            Turns { queue: VecDeque::new(), latency }
        });
        Self { models: models.collect(), whole: WholeDevice::new(&device), next: 0 }
    }

    /// Takes in requests of one model that came together.
    fn arrive(&mut self, requests: &[Request], actions: &mut Vec<Action>) {
        let Some(first) = requests.first() else { return };
        let queue = &mut self.models[first.model.index()].queue;
        match queue.len() + requests.len() <= QUEUE_LIMIT {
            true => queue.extend(requests),
            false => actions.extend(
                requests
                    .iter()
                    .map(|request| Action::Refuse { request: request.id, why: Refusal::QueueFull }),
            ),
        }
    }

    fn take_turn(&mut self, now: Time, actions: &mut Vec<Action>) {
        if !self.whole.is_free() {
            return;
        }
        let count = self.models.len();
        for place in (self.next..count).chain(0..self.next) {
            let Turns { queue, latency } = &mut self.models[place];
            let late = queue.iter().take_while(|request| request.deadline < now).count();
            actions.extend(queue.drain(..late).map(|request| Action::Shed(request.id)));
            if queue.is_empty() {
                continue;
            }
            let batch = queue.len().min(latency.len());
            let requests: Vec<Request> = queue.drain(..batch).collect();
            self.whole.launch(&requests, latency[batch - 1], now, actions);
            self.next = (place + 1) % count;
            return;
        }
    }
}

impl Policy for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        match event {
            Event::Started => self.whole.prepare(actions),
            Event::Prepared(_) => self.whole.activate(actions),
            Event::Arrived(request) => self.arrive(&[request], actions),
            Event::ArrivedTogether(requests) => self.arrive(&requests, actions),
            Event::Finished(launch) => {
                self.whole.finish(launch);
            }
            Event::Begun(_)
            | Event::Thinned(_)
            | Event::Unprepared(_)
            | Event::Planned(_)
            | Event::Unplanned
            | Event::Regulated { .. }
            | Event::Woken => {}
        }
        self.take_turn(now, actions);
    }
}
