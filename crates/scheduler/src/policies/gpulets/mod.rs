//! Gpu-lets: partitions of a few sizes, each shared in time by a few models, divided anew by measured rates now and then.
//!
//! After Choi et al., "Serving Heterogeneous Machine Learning Models on Multi-GPU Servers with Spatio-Temporal Sharing",
//! USENIX ATC 2022. Where this differs, it is to be stronger on a single device. The paper splits a GPU into two gpu-lets
//! and takes another GPU when these are full; here a device is split into as many as the sizes allow, models that fit
//! nowhere are squeezed in, in overcrowded gpu-lets if there are more models than seats, and units left over widen the
//! busiest gpu-let. Lanes order requests by deadline instead of by a fixed cycle. The interference between gpu-lets is that
//! of the latency function instead of a regression.

mod elastic;
mod gpulet;

use crate::identity::ModelId;
use crate::latency::PredictionError;
use crate::policy::{Action, Event, PartitionId, Policy};
use crate::request::Request;
use crate::served::ServedDevice;
use crate::serving::{Serving, ServingPartition};
use crate::time::{Span, Time};
use crate::unit_mask::UnitMask;

use gpulet::Gpulet;

/// How often rates are looked at, and gpu-lets divided anew.
const PERIOD: Span = Span::from_nanos(20_000_000_000);

/// Gpu-lets that follow the load.
pub struct Gpulets {
    device: ServedDevice,
    serving: Serving,
    /// What is served on, or will be as soon as all of it is prepared.
    partitions: Vec<ServingPartition>,
    unprepared: Vec<PartitionId>,
    next_partition: u32,
    /// Requests by model since the period began.
    arrived: Vec<u64>,
    period_began: Time,
}

impl Gpulets {
    /// On a device with its models.
    pub fn new(device: ServedDevice) -> Self {
        Self {
            serving: Serving::new(device.clone()),
            partitions: Vec::new(),
            unprepared: Vec::new(),
            next_partition: 0,
            arrived: vec![0; device.models.len()],
            period_began: Time::START,
            device,
        }
    }

    /// Divides the device for these rates and prepares what is not there yet.
    fn divide(&mut self, rates_per_s: &[f64], actions: &mut Vec<Action>) {
        let mut before = std::mem::take(&mut self.partitions);
        let mut free = UnitMask::range(0, self.device.units);
        let mut new = Vec::new();
        for gpulet in elastic::gpulets(&self.device, rates_per_s) {
            let models = self.models(&gpulet);
            let is_same = |partition: &ServingPartition| {
                partition.units.len() == gpulet.units && partition.models == models
            };
            match before.iter().position(is_same) {
                Some(place) => {
                    let kept = before.swap_remove(place);
                    free = free.without(kept.units);
                    self.partitions.push(kept);
                }
                None => new.push((gpulet.units, models)),
            }
        }
        for (count, models) in new {
            let units: UnitMask = free.iter().take(count as usize).collect();
            free = free.without(units);
            let id = PartitionId(self.next_partition);
            self.next_partition += 1;
            self.unprepared.push(id);
            let partition = ServingPartition { id, units, models };
            actions.push(partition.preparation());
            self.partitions.push(partition);
        }
    }

    fn models(&self, gpulet: &Gpulet) -> Vec<(ModelId, u32)> {
        let mut models: Vec<ModelId> = gpulet.seats.iter().map(|seat| seat.model).collect();
        models.sort_unstable();
        let batch = |model: ModelId| (model, self.device.models[model.index()].largest_batch());
        models.into_iter().map(batch).collect()
    }

    fn arrive(&mut self, requests: &[Request], now: Time, actions: &mut Vec<Action>) {
        requests.iter().for_each(|request| self.arrived[request.model.index()] += 1);
        let period = now.since(self.period_began);
        if period >= PERIOD && self.unprepared.is_empty() {
            let rate_per_s = |&count: &u64| count as f64 / period.seconds();
            let rates_per_s: Vec<f64> = self.arrived.iter().map(rate_per_s).collect();
            self.arrived.fill(0);
            self.period_began = now;
            self.divide(&rates_per_s, actions);
            self.switch_if_prepared(now, actions);
        }
        // Refusals are among the actions.
        self.serving.arrive(requests, now, actions);
    }

    fn switch_if_prepared(&mut self, now: Time, actions: &mut Vec<Action>) {
        if self.unprepared.is_empty() {
            self.serving.switch(&self.partitions, now, actions);
        }
    }
}

impl Policy for Gpulets {
    fn name(&self) -> &'static str {
        "gpulets"
    }

    fn prediction_error(&self) -> Option<PredictionError> {
        self.serving.latency().error_overall()
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        let first = actions.len();
        match event {
            Event::Started => {
                let models = self.device.models.iter();
                let expected: Vec<f64> = models.map(|model| model.expected_per_s).collect();
                self.divide(&expected, actions);
            }
            Event::Prepared(id) => {
                self.unprepared.retain(|other| *other != id);
                self.switch_if_prepared(now, actions);
            }
            Event::Arrived(request) => self.arrive(&[request], now, actions),
            Event::ArrivedTogether(requests) => self.arrive(&requests, now, actions),
            Event::Begun(launch) => self.serving.begin(launch, now),
            Event::Thinned(launch) => self.serving.thin(launch),
            Event::Finished(launch) => self.serving.finish(launch, now, actions),
            Event::Unprepared(_)
            | Event::Planned(_)
            | Event::Unplanned
            | Event::Regulated { .. }
            | Event::Woken => {}
        }
        let ended = actions[first..].iter().filter_map(|action| match action {
            Action::Deactivate(partition) => Some(Action::Discard(*partition)),
            _ => None,
        });
        let ended: Vec<Action> = ended.collect();
        actions.extend(ended);
    }
}
