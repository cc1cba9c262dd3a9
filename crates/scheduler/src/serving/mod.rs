//! Partitions that serve: each with its lane, and requests routed to the one where they cost the least.

mod admission;
mod certainty;
mod fixed;
mod latencies;
mod mix;
mod partition;
mod stragglers;
mod trials;

pub use fixed::FixedServing;
pub(crate) use latencies::LatencyTables;
pub use mix::{MixUse, ReadyMix};

use std::sync::Arc;

use crate::identity::{MixId, ModelId};
use crate::latency::{LatencyFunction, memory_stretch};
use crate::learned::LearnedModel;
use crate::policy::{Action, LaunchId, PartitionId};
use crate::request::Request;
use crate::served::ServedDevice;
use crate::time::{Span, Time};
use crate::unit_mask::UnitMask;

pub(crate) use certainty::Certainty;
use latencies::Conditions;
use mix::ServedMix;
use partition::{Running, Served, State};
use stragglers::Stragglers;
use trials::Trials;

/// How much of the distance to the memory's present load is gone with each launch.
const STRETCH_WEIGHT: f64 = 0.05;

/// A partition to be served: its units, and the models that it serves, each up to a batch size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingPartition {
    /// Its number.
    pub id: PartitionId,
    /// Its units.
    pub units: UnitMask,
    /// The models, and the largest batch of each.
    pub models: Vec<(ModelId, u32)>,
}

impl ServingPartition {
    /// Partitions of these sizes, with the models of each, on the first units of a device.
    pub(crate) fn side_by_side(
        partitions: impl IntoIterator<Item = (u32, Vec<(ModelId, u32)>)>,
    ) -> Vec<Self> {
        let mut first = 0;
        let partition = |(index, (count, models)): (u32, (u32, Vec<(ModelId, u32)>))| {
            let units = UnitMask::range(first, count);
            first += count;
            Self { id: PartitionId(index), units, models }
        };
        (0u32..).zip(partitions).map(partition).collect()
    }

    /// Makes all its models ready.
    pub fn preparation(&self) -> Action {
        Action::Prepare {
            partition: self.id,
            units: self.units,
            models: self.models.iter().map(|(model, _)| *model).collect(),
        }
    }
}

/// The partitions of one device and the requests that wait for them.
pub struct Serving {
    device: ServedDevice,
    tables: Arc<LatencyTables>,
    latency: LatencyFunction,
    conditions: Conditions,
    partitions: Vec<Served>,
    /// By model: the partitions that serve it, by their places.
    routes: Vec<Vec<usize>>,
    stragglers: Stragglers,
    /// By model; that of a group is its lead's.
    trials: Vec<Trials>,
    mix: Option<ServedMix>,
    /// The one that was launched last, while none is.
    resting: Option<ServedMix>,
    next_launch: u64,
}

impl Serving {
    /// Nothing is served yet.
    pub fn new(device: ServedDevice) -> Self {
        let corrections = vec![1.0; device.models.len()];
        Self::with_tables(&device, Arc::new(LatencyTables::new(&device)), &corrections)
    }

    /// The same, with tables of the device that have been used before, and with what has been learned about its models.
    pub(crate) fn with_tables(
        device: &ServedDevice,
        tables: Arc<LatencyTables>,
        corrections: &[f64],
    ) -> Self {
        let models = device.models.len();
        let leads = device.leads();
        let latency = LatencyFunction::new(models).corrected(corrections).led_by(leads.clone());
        let ids = || (0..models as u32).map(ModelId);
        let conditions = Conditions {
            leads,
            memory_stretch: 1.0,
            corrections: ids().map(|model| latency.correction(model)).collect(),
            spreads: ids().map(|model| latency.spread(model)).collect(),
            certainties: vec![Certainty::default(); models],
            mix: None,
        };
        Self {
            latency,
            conditions,
            partitions: Vec::new(),
            routes: vec![Vec::new(); models],
            stragglers: Stragglers::new(device),
            trials: vec![Trials::default(); models],
            mix: None,
            resting: None,
            next_launch: 0,
            device: device.clone(),
            tables,
        }
    }

    /// What is known about latencies by now.
    pub fn latency(&self) -> &LatencyFunction {
        &self.latency
    }

    /// What was learned about each model.
    pub(crate) fn learned(&self) -> Vec<Option<LearnedModel>> {
        let learned = |model: ModelId| {
            let latency = self.latency.of(model).clone();
            let certainty = self.conditions.certainties[self.conditions.index(model)];
            Some(LearnedModel { latency, certainty })
        };
        (0..self.device.models.len() as u32).map(ModelId).map(learned).collect()
    }

    /// Knows about models what was learned before; where members of a group have learned apart, what the first of them has.
    pub(crate) fn start_from(&mut self, learned: Vec<Option<LearnedModel>>) {
        let models = (0..self.device.models.len() as u32).map(ModelId).zip(learned);
        for (model, LearnedModel { latency, certainty }) in
            models.rev().filter_map(|(model, learned)| Some((model, learned?)))
        {
            let index = self.conditions.index(model);
            self.latency.take_over(model, latency);
            self.conditions.certainties[index] = certainty;
            self.note_latency(model);
        }
    }

    /// Members of groups that hold the others up are left among them.
    pub fn keep_stragglers(&mut self) {
        self.stragglers.watch_nobody();
    }

    /// Whether a member of a group is served apart from the others.
    pub fn is_evicted(&self, model: ModelId, now: Time) -> bool {
        self.stragglers.is_evicted(model, now)
    }

    /// Launches a mix as one where that is better, from now on and in place of the one before it; `None` launches each batch by
    /// itself. A partition that comes to serve other models launches no mix until it is told to again. What is learned of a mix is
    /// known for as long as no other one is launched.
    pub fn set_mix(&mut self, ready: Option<ReadyMix>) {
        for served in &mut self.partitions {
            let of_partition =
                ready.as_ref().filter(|ready| ready.partition == served.partition.id);
            served.lane.set_mix(of_partition.map(|ready| &ready.mix));
        }
        let (before, resting) = (self.mix.take(), self.resting.take());
        let Some(ready) = ready else {
            self.resting = before.or(resting);
            return self.note_mix();
        };
        let same = before.or(resting).filter(|mix| mix.id() == ready.mix.mix);
        self.mix = Some(match same {
            Some(same) => same.again(ready),
            None => ServedMix::new(ready),
        });
        self.note_mix();
    }

    /// What was learned of a mix that is not launched may not hold any more.
    pub fn doubt_resting_mix(&mut self) {
        self.resting.iter_mut().for_each(ServedMix::doubt);
    }

    /// What was learned of a mix that is launched, or was until of late: a factor on its share of what its batches take.
    pub fn mix_correction(&self, mix: MixId) -> f64 {
        let known = self.mix.iter().chain(&self.resting).find(|known| known.id() == mix);
        known.map_or(1.0, ServedMix::correction)
    }

    /// Requests of the mix come this far apart from now on, and can be counted on to come, or cannot.
    pub fn adjust_mix(&mut self, lag: Span, can_be_counted_on: bool) {
        let Some(mix) = &mut self.mix else { return };
        (mix.ready.mix.lag, mix.ready.mix.can_be_counted_on) = (lag, can_be_counted_on);
        let of_mix = |served: &&mut Served| served.partition.id == mix.ready.partition;
        if let Some(served) = self.partitions.iter_mut().find(of_mix) {
            served.lane.set_mix(Some(&mix.ready.mix));
        }
    }

    /// How requests of the mix's models were run since this was last asked.
    pub fn take_mix_use(&mut self) -> MixUse {
        self.mix.as_mut().map_or(MixUse::default(), ServedMix::take_use)
    }

    fn note_mix(&mut self) {
        self.conditions.mix = self.mix.as_ref().map(|mix| (mix.id(), mix.latency()));
    }

    /// Launches what can be, after an instant that was [waited for](Action::WakeAt).
    pub fn wake(&mut self, now: Time, actions: &mut Vec<Action>) {
        for place in 0..self.partitions.len() {
            self.launch(place, now, actions);
        }
    }

    /// Whether a partition serves, or still ends what it runs.
    pub fn uses(&self, id: PartitionId) -> bool {
        self.partitions.iter().any(|served| served.partition.id == id)
    }

    /// Serves on these partitions from now on, which are prepared, and on no others: those that are served already go on,
    /// others end what they run and give their units back, and each new one begins when its units are free. Requests that
    /// wait elsewhere move to them.
    pub fn switch(
        &mut self,
        partitions: &[ServingPartition],
        now: Time,
        actions: &mut Vec<Action>,
    ) {
        let mut moved = Vec::new();
        for served in &mut self.partitions {
            let goes_on = partitions.iter().find(|partition| partition.id == served.partition.id);
            match goes_on {
                Some(partition) if served.serves_as(partition) => {}
                _ => moved.append(&mut served.lane.take_waiting()),
            }
            match goes_on {
                Some(partition) => served.reconfigure(&self.device, &self.tables, partition),
                None => served.leave(),
            }
        }
        for partition in partitions {
            if !self.partitions.iter().any(|served| served.partition.id == partition.id) {
                self.partitions.push(Served::new(&self.device, &self.tables, partition));
            }
        }
        self.give_units(now, actions);
        // The most urgent first; they were accepted and are not refused now.
        moved.sort_by_key(|request: &Request| (request.deadline, request.id));
        for request in moved {
            match self.cheapest(&request, now) {
                Some((prospect, place)) => self.partitions[place].lane.put(request, prospect),
                None => actions.push(Action::Shed(request.id)),
            }
        }
        for place in 0..self.partitions.len() {
            self.launch(place, now, actions);
        }
    }

    /// Takes units from partitions that have ended and gives them to those that wait for them.
    fn give_units(&mut self, now: Time, actions: &mut Vec<Action>) {
        let has_ended = |served: &Served| served.state == State::Leaving && served.is_idle();
        for served in self.partitions.iter().filter(|served| has_ended(served)) {
            if served.is_active {
                actions.push(Action::Deactivate(served.partition.id));
            }
        }
        self.partitions.retain(|served| !has_ended(served));
        self.routes.iter_mut().for_each(Vec::clear);
        for (place, served) in self.partitions.iter().enumerate() {
            if served.state != State::Leaving {
                let models = served.partition.models.iter();
                models.for_each(|(model, _)| self.routes[model.index()].push(place));
            }
        }
        let mut taken = UnitMask::EMPTY;
        let active = self.partitions.iter().filter(|served| served.is_active);
        active.for_each(|served| taken = taken.union(served.partition.units));
        for place in 0..self.partitions.len() {
            let served = &self.partitions[place];
            if served.state != State::Waiting {
                continue;
            }
            if served.partition.units.is_disjoint(taken) {
                taken = taken.union(served.partition.units);
                actions.push(Action::Activate(served.partition.id));
                let served = &mut self.partitions[place];
                (served.state, served.is_active) = (State::Serving, true);
            } else {
                let blocks = |other: &&Served| {
                    other.is_active && !other.partition.units.is_disjoint(served.partition.units)
                };
                let free_at = self
                    .partitions
                    .iter()
                    .filter(blocks)
                    .map(|other| other.lane.free_at(now))
                    .max();
                self.partitions[place].lane.set_busy_until(free_at.unwrap_or(now));
            }
        }
    }

    /// A launch begins only now: what held it up says nothing of how long it takes, nor does how it goes after that.
    pub fn begin(&mut self, launch: LaunchId, now: Time) {
        // It is one partition's.
        let _ = self.partitions.iter_mut().any(|served| served.begin(launch, now));
    }

    /// Only a part of a launch runs, or nothing of it: how it goes says nothing of what was predicted for all of it.
    pub fn thin(&mut self, launch: LaunchId) {
        for served in &mut self.partitions {
            let of_it = served.launches_mut().filter(|running| running.launch == launch);
            of_it.for_each(|running| running.teaches_nothing = true);
        }
    }

    /// A launch has ended: learns from it, and uses the partition again.
    pub fn finish(&mut self, launch: LaunchId, now: Time, actions: &mut Vec<Action>) {
        let has = |served: &Served| served.launches().any(|running| running.launch == launch);
        let Some(place) = self.partitions.iter().position(has) else { return };
        let served = &mut self.partitions[place];
        if let Some(ended) = served.paused.take_if(|paused| paused.launch == launch) {
            // It ended before it noticed. How long it took says nothing, since it shared its units.
            served.lane.take_paused();
            self.learn_promises(&ended, now, actions);
            return;
        }
        let Some(running) = served.running.take() else { return };
        let took = now.since(running.started);
        if let Some(paused) = &mut served.paused {
            paused.paused += took;
        }
        served.lane.set_busy_until(now);
        let took = took.saturating_sub(running.paused);
        self.learn_duration(&running, took);
        self.learn_promises(&running, now, actions);
        let served = &mut self.partitions[place];
        if served.state == State::Leaving && !served.resume(now) {
            self.give_units(now, actions);
            for place in 0..self.partitions.len() {
                self.launch(place, now, actions);
            }
        } else {
            self.launch(place, now, actions);
        }
    }

    fn learn_duration(&mut self, ended: &Running, took: Span) {
        if ended.teaches_nothing {
            return;
        }
        if ended.mix.is_some() {
            // One that is no longer known teaches nothing.
            if let Some(mix) = self.mix.as_mut().filter(|mix| ended.mix == Some(mix.id())) {
                mix.observe(ended.prediction, took);
                self.note_mix();
            }
            return;
        }
        self.latency.observe(ended.model, ended.prediction, took);
        self.note_latency(ended.model);
        if ended.requests.iter().all(|request| request.deadline == Time::NEVER) {
            let index = self.conditions.index(ended.model);
            self.trials[index].observe(took.us() / ended.prediction.latency.us());
        }
    }

    fn note_latency(&mut self, model: ModelId) {
        let index = self.conditions.index(model);
        self.conditions.corrections[index] = self.latency.correction(model);
        self.conditions.spreads[index] = self.latency.spread(model);
    }

    fn learn_promises(&mut self, ended: &Running, now: Time, actions: &mut Vec<Action>) {
        if ended.teaches_nothing {
            return;
        }
        let late = ended.requests.iter().filter(|request| now > request.deadline);
        let mut missed: Vec<ModelId> = late.map(|request| request.model).collect();
        let Conditions { leads, certainties, .. } = &mut self.conditions;
        let lead = |request: &Request| leads[request.model.index()].index();
        // All requests are of one model or group, unless they are of a mix.
        for own in ended.requests.chunk_by(|one, other| lead(one) == lead(other)) {
            let promised = own.iter().filter(|request| request.deadline != Time::NEVER).count();
            let late = own.iter().filter(|request| now > request.deadline).count();
            certainties[lead(&own[0])].observe(promised - late, late);
        }
        missed.sort_unstable();
        missed.dedup();
        missed.into_iter().for_each(|model| self.strike(model, now, actions));
    }

    /// A member holds the others of its group up, or misses.
    fn strike(&mut self, model: ModelId, now: Time, actions: &mut Vec<Action>) {
        if let Some(until) = self.stragglers.strike(model, now) {
            actions.push(Action::Evicted { model, until });
        }
    }

    fn launch(&mut self, place: usize, now: Time, actions: &mut Vec<Action>) {
        let served = &mut self.partitions[place];
        served.pause_if_interrupted();
        let is_free = served.state == State::Serving && served.running.is_none();
        if !is_free || (served.lane.waiting() == 0 && served.paused.is_none()) {
            return;
        }
        let running = self.partitions.iter().filter_map(|other| other.running.as_ref());
        let stretch = memory_stretch(running.map(|running| running.memory));
        let distance = stretch - self.conditions.memory_stretch;
        self.conditions.memory_stretch += STRETCH_WEIGHT * distance;
        let served = &mut self.partitions[place];
        let latency = served.latencies.under(&self.conditions);
        if let Some(until) = served.lane.gathers_until(now, &latency) {
            return actions.push(Action::WakeAt(until));
        }
        let mut shed = Vec::new();
        let batch = served.lane.next(now, &latency, |late| shed.push(late));
        for late in shed {
            actions.push(Action::Shed(late.id));
            let index = self.conditions.leads[late.model.index()].index();
            self.conditions.certainties[index].observe(0, 1);
            self.strike(late.model, now, actions);
        }
        let served = &mut self.partitions[place];
        let Some(batch) = batch else {
            served.resume(now);
            return;
        };
        let launch = LaunchId(self.next_launch);
        self.next_launch += 1;
        let of_first = |request: &&Request| batch.mix.is_none() || request.model == batch.model;
        let size = batch.requests.iter().filter(of_first).count() as u32;
        let alone = served.latencies.alone(batch.model, size);
        if let Some(mix) = &mut self.mix {
            mix.count(served.partition.id, &batch);
        }
        let prediction = match &self.mix {
            Some(mix) if batch.mix == Some(mix.id()) => mix.prediction(batch.expected),
            _ => self.latency.prediction(batch.model, batch.expected),
        };
        actions.push(Action::Launch {
            launch,
            partition: served.partition.id,
            model: batch.model,
            mix: batch.mix,
            requests: batch.requests.iter().map(|request| request.id).collect(),
            expected: batch.expected,
        });
        served.running = Some(Running {
            launch,
            mix: batch.mix,
            requests: batch.requests,
            model: batch.model,
            started: now,
            memory: alone.memory,
            prediction,
            paused: Span::ZERO,
            teaches_nothing: false,
        });
    }
}
