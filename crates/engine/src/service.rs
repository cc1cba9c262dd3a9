//! A service: one policy over one set of models, the requests that wait for it and the partitions it has. It is told what
//! happens and says what is to be done; who holds it does that.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weft_device::{DeviceError, Urgency};
use weft_scheduler::{
    Action, Event, LaunchId, LayoutFound, LayoutTask, MixId, ModelId, NoMix, PartitionId, Policy,
    Request, RequestId, Span, Time, UnitMask,
};

use crate::call::{Call, Claim, Piece, Row, Submission, pieces};
use crate::clock::span;
use crate::error::InferError;
use crate::execution::{Part, Together};
use crate::mixing::{ReadyMix, WantedMix};
use crate::model::{EngineModel, ModelKey};
use crate::seat::ReadyModel;
use crate::station::{Job, Station};

/// Numbers the services of an engine, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Generation(pub(crate) u64);

/// A partition with models that are ready on it.
pub(crate) struct Ready {
    pub(crate) station: Arc<Station>,
    pub(crate) models: Vec<(ModelId, ReadyModel)>,
}

/// What somebody who works for a service has to say.
pub(crate) enum Message {
    /// A launch has ended, and was what it was launched as, or was not.
    Finished(LaunchId, bool),
    Prepared(PartitionId, Result<Ready, DeviceError>),
    /// `None` where a task could not be solved.
    Planned(Option<Box<LayoutFound>>),
    /// A mix is ready, and takes so long; or is not, or no more.
    Regulated(MixId, Result<(Arc<ReadyMix>, f64), NoMix>),
    Woken,
}

/// What is to be done once nobody waits for the service any more.
#[derive(Default)]
pub(crate) struct Effects {
    /// Requests that end here.
    pub(crate) answers: Vec<(Arc<Call>, InferError)>,
    /// Batches to run, and where.
    pub(crate) jobs: Vec<(Arc<Station>, Job)>,
    pub(crate) preparations: Vec<Preparation>,
    /// Units whose partition is needed no more.
    pub(crate) discards: Vec<(UnitMask, Layer)>,
    pub(crate) plans: Vec<LayoutTask>,
    pub(crate) mixes: Vec<WantedMix>,
    /// Mixes that are needed no more, and let go of where nobody waits for it.
    pub(crate) forgotten: Vec<Mixed>,
    /// The partitions that are active, where some have become so.
    pub(crate) repartitioned: Option<Vec<UnitMask>>,
    /// Members of groups that are served apart from now on, and for how long.
    pub(crate) evicted: Vec<(ModelKey, Duration)>,
    pub(crate) wakes: Vec<Time>,
}

/// A partition to be made ready.
pub(crate) struct Preparation {
    pub(crate) partition: PartitionId,
    pub(crate) units: UnitMask,
    pub(crate) models: Vec<(ModelId, EngineModel)>,
    pub(crate) layer: Layer,
}

/// Who goes first on units that several want.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Layer {
    Foreground,
    /// Runs while the foreground leaves the units idle.
    Background,
}

/// A mix as the service knows it.
pub(crate) enum Mixed {
    /// It is being regulated, unless this is set.
    Wanted(Arc<AtomicBool>),
    Ready(Arc<ReadyMix>),
}

/// A partition as the service knows it.
pub(crate) struct Prepared {
    pub(crate) units: UnitMask,
    pub(crate) is_active: bool,
    /// The last one runs; the one before it, if there is one, is paused.
    pub(crate) launches: Vec<Running>,
    station: Option<Arc<Station>>,
    ready: HashMap<ModelId, ReadyModel>,
}

/// What a partition runs, or what is paused on it.
pub(crate) struct Running {
    pub(crate) launch: LaunchId,
    /// That of the first request.
    pub(crate) model: ModelId,
    /// How many rows of which models.
    pub(crate) tenants: Vec<(ModelKey, u32)>,
    pub(crate) is_fused: bool,
    pub(crate) is_mixed: bool,
    pub(crate) since: Time,
    pub(crate) expected: Span,
}

impl Running {
    pub(crate) fn rows(&self) -> u32 {
        self.tenants.iter().map(|(_, rows)| rows).sum()
    }
}

pub(crate) struct Service {
    pub(crate) generation: Generation,
    pub(crate) layer: Layer,
    pub(crate) policy: Box<dyn Policy>,
    /// By their ids.
    pub(crate) models: Arc<[EngineModel]>,
    places: HashMap<ModelKey, ModelId>,
    pub(crate) waiting: HashMap<RequestId, Row>,
    /// How many of these there are, by model.
    queued: Vec<usize>,
    pub(crate) partitions: HashMap<PartitionId, Prepared>,
    pub(crate) mixes: HashMap<MixId, Mixed>,
    /// Launches that have not ended.
    pub(crate) running: usize,
    /// Preparations and plans that have not come back.
    pub(crate) outstanding: usize,
    /// Why what it began with could not be made ready.
    pub(crate) failure: Option<DeviceError>,
    /// Jobs wait for what else is run on the same units.
    held: Option<Vec<(PartitionId, Job)>>,
    /// Partitions whose units were used for something else since the last launch.
    disturbed: HashSet<PartitionId>,
    next_request: u64,
    actions: Vec<Action>,
}

impl Service {
    pub(crate) fn new(
        generation: Generation,
        layer: Layer,
        policy: Box<dyn Policy>,
        models: Arc<[EngineModel]>,
    ) -> Self {
        let ids = (0u32..).map(ModelId);
        Self {
            generation,
            layer,
            policy,
            places: models.iter().map(|model| model.key).zip(ids).collect(),
            queued: vec![0; models.len()],
            models,
            waiting: HashMap::new(),
            partitions: HashMap::new(),
            mixes: HashMap::new(),
            running: 0,
            outstanding: 0,
            failure: None,
            held: None,
            disturbed: HashSet::new(),
            next_request: 0,
            actions: Vec::new(),
        }
    }

    pub(crate) fn begin(&mut self, now: Time, effects: &mut Effects) {
        self.react(Event::Started, now, effects);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running == 0
    }

    /// Mixes that can be launched.
    pub(crate) fn ready_mixes(&self) -> impl Iterator<Item = &Arc<ReadyMix>> {
        let ready = self.mixes.values().filter_map(|mix| match mix {
            Mixed::Ready(mix) => Some(mix),
            Mixed::Wanted(_) => None,
        });
        ready.filter(|mix| !mix.is_gone())
    }

    pub(crate) fn serves(&self, model: ModelKey) -> bool {
        self.places.contains_key(&model)
    }

    /// From a request's arrival to its deadline, where it has one.
    pub(crate) fn allowed(&self, submission: &Submission) -> Option<Span> {
        let place = self.places.get(&submission.model)?;
        let model = &self.models[place.index()];
        let objective = model.served.slo.map(|slo| slo.latency);
        let objective = objective.filter(|_| submission.claim == Claim::Promised);
        let timeout = submission.timeout.or(model.limits.timeout).map(span);
        [objective, timeout].into_iter().flatten().min()
    }

    /// Whether as many requests of a model wait as may.
    pub(crate) fn is_full(&self, model: ModelKey) -> bool {
        let place = self.places.get(&model);
        place.is_some_and(|place| {
            self.queued[place.index()] >= self.models[place.index()].limits.max_queue
        })
    }

    /// Rows of a model that wait.
    pub(crate) fn queued(&self, model: ModelKey) -> usize {
        self.places.get(&model).map_or(0, |place| self.queued[place.index()])
    }

    /// Takes in rows of a request.
    pub(crate) fn arrive(&mut self, piece: Piece, now: Time, effects: &mut Effects) {
        let Piece { call, rows } = piece;
        let Some(&model) = self.places.get(&call.model) else {
            return effects.answers.push((call, InferError::NotServed));
        };
        self.queued[model.index()] += rows.len();
        let mut request = |index: u32| {
            let id = RequestId(self.next_request);
            self.next_request += 1;
            self.waiting.insert(id, Row { call: call.clone(), index });
            Request { id, model, arrived: call.arrived, deadline: call.deadline }
        };
        let event = match rows.len() {
            1 => Event::Arrived(request(rows.start)),
            _ => Event::ArrivedTogether(rows.map(request).collect()),
        };
        self.react(event, now, effects);
    }

    pub(crate) fn tell(&mut self, message: Message, now: Time, effects: &mut Effects) {
        match message {
            Message::Woken => self.react(Event::Woken, now, effects),
            Message::Finished(launch, is_as_launched) => {
                if !is_as_launched {
                    self.tell_of_launch(Event::Thinned(launch), now);
                }
                self.running -= 1;
                for partition in self.partitions.values_mut() {
                    partition.launches.retain(|running| running.launch != launch);
                }
                self.react(Event::Finished(launch), now, effects);
            }
            Message::Regulated(mix, ready) => {
                // It may have been forgotten while it was regulated.
                if let Some(known) = self.mixes.get_mut(&mix) {
                    let share = ready.map(|(ready, share)| {
                        *known = Mixed::Ready(ready);
                        share
                    });
                    self.react(Event::Regulated { mix, share }, now, effects);
                    // From now on it is not launched.
                    if share.is_err() {
                        effects.forgotten.extend(self.mixes.remove(&mix));
                    }
                }
            }
            Message::Planned(found) => {
                self.outstanding -= 1;
                self.react(found.map_or(Event::Unplanned, Event::Planned), now, effects);
            }
            Message::Prepared(id, Ok(ready)) => {
                self.outstanding -= 1;
                if let Some(prepared) = self.partitions.get_mut(&id) {
                    prepared.station = Some(ready.station);
                    prepared.ready.extend(ready.models);
                    self.react(Event::Prepared(id), now, effects);
                }
            }
            Message::Prepared(id, Err(error)) => {
                self.outstanding -= 1;
                self.failure.get_or_insert(error);
                self.react(Event::Unprepared(id), now, effects);
            }
        }
    }

    fn react(&mut self, event: Event, now: Time, effects: &mut Effects) {
        let mut actions = std::mem::take(&mut self.actions);
        self.policy.react(event, now, &mut actions);
        let repartitions = actions.iter().any(|action| matches!(action, Action::Activate(_)));
        for action in actions.drain(..) {
            self.carry_out(action, now, effects);
        }
        self.actions = actions;
        if repartitions {
            let active = self.partitions.values().filter(|partition| partition.is_active);
            effects.repartitioned = Some(active.map(|partition| partition.units).collect());
        }
    }

    fn carry_out(&mut self, action: Action, now: Time, effects: &mut Effects) {
        match action {
            Action::Prepare { partition, units, models } => {
                self.outstanding += 1;
                let new = || Prepared {
                    units,
                    is_active: false,
                    launches: Vec::new(),
                    station: None,
                    ready: HashMap::new(),
                };
                self.partitions.entry(partition).or_insert_with(new);
                let models =
                    models.into_iter().map(|id| (id, self.models[id.index()].clone())).collect();
                let layer = self.layer;
                effects.preparations.push(Preparation { partition, units, models, layer });
            }
            Action::Discard(partition) => {
                let discarded = self.partitions.remove(&partition);
                effects.discards.extend(discarded.map(|partition| (partition.units, self.layer)));
            }
            Action::Activate(partition) => self.set_active(partition, true),
            Action::Deactivate(partition) => self.set_active(partition, false),
            Action::Launch { launch, partition, model, mix, requests, expected } => {
                let rows: Vec<Row> =
                    requests.iter().filter_map(|id| self.waiting.remove(id)).collect();
                for row in &rows {
                    self.queued[self.places[&row.call.model].index()] -= 1;
                }
                let job = (partition, model, launch);
                // Without it, rows of different models would run as one model's batch.
                let mix = mix.map(|mix| match self.mixes.get(&mix) {
                    Some(Mixed::Ready(mix)) => mix.clone(),
                    _ => panic!("a mix is launched once it is ready"),
                });
                let pieces = pieces(rows);
                let running: usize = pieces.iter().map(|piece| piece.rows.len()).sum();
                self.launch(job, mix, pieces, (now, expected), effects);
                if running < requests.len() {
                    self.tell_of_launch(Event::Thinned(launch), now);
                }
            }
            Action::Refuse { request, why } => {
                self.end(request, InferError::Refused(why), effects);
            }
            Action::Shed(request) => self.end(request, InferError::Shed, effects),
            Action::Plan(task) => {
                self.outstanding += 1;
                effects.plans.push(*task);
            }
            Action::Regulate { mix, units, models, may_hold_up } => {
                let is_unwanted = Arc::<AtomicBool>::default();
                self.mixes.insert(mix, Mixed::Wanted(is_unwanted.clone()));
                let model = |(id, count): (ModelId, u32)| (self.models[id.index()].clone(), count);
                let models = models.into_iter().map(model).collect();
                effects.mixes.push(WantedMix { mix, units, models, may_hold_up, is_unwanted });
            }
            Action::Forget(mix) => {
                let forgotten = self.mixes.remove(&mix);
                if let Some(Mixed::Wanted(is_unwanted)) = &forgotten {
                    is_unwanted.store(true, Ordering::Relaxed);
                }
                effects.forgotten.extend(forgotten);
            }
            Action::Try(_) => {}
            Action::Evicted { model, until } => {
                let length = Duration::from_nanos(until.since(now).nanos());
                effects.evicted.push((self.models[model.index()].key, length));
            }
            Action::WakeAt(at) => effects.wakes.push(at),
        }
    }

    fn set_active(&mut self, id: PartitionId, is_active: bool) {
        if let Some(partition) = self.partitions.get_mut(&id) {
            partition.is_active = is_active;
        }
    }

    /// Has a batch run; one whose requests are all over runs empty, so that it ends like any other.
    fn launch(
        &mut self,
        (id, model, launch): (PartitionId, ModelId, LaunchId),
        mix: Option<Arc<ReadyMix>>,
        pieces: Vec<Piece>,
        (now, expected): (Time, Span),
        effects: &mut Effects,
    ) {
        let partition = self.partitions.get_mut(&id).expect("launched where it was prepared");
        let urgency = match partition.launches.is_empty() {
            true => Urgency::InTurn,
            false => Urgency::AtOnce,
        };
        // A fused run waits its turn.
        let membership = self.models[model.index()].group.as_ref();
        let rows = pieces.iter().map(|piece| piece.rows.len() as u32).sum();
        let is_fused = urgency == Urgency::InTurn
            && membership.is_some_and(|it| it.fuses(rows, partition.units.len()));
        let together = match mix {
            Some(mix) => Together::Mixed(mix),
            None if is_fused => Together::Fused,
            None => Together::AsBatch,
        };
        let is_mixed = together.is_mixed();
        let part = |piece: Piece| {
            let model = partition.ready[&self.places[&piece.call.model]].clone();
            Part { piece, model }
        };
        let job = Job {
            generation: self.generation,
            launch,
            model: self.models[model.index()].key,
            partition: id,
            layer: self.layer,
            units: partition.units,
            parts: pieces.into_iter().map(part).collect(),
            together,
            launched: now,
            expected,
            urgency,
        };
        self.running += 1;
        let tenants = job.tenants();
        let since = now;
        let running = Running { launch, model, tenants, is_fused, is_mixed, since, expected };
        partition.launches.push(running);
        match (&mut self.held, &partition.station) {
            (Some(held), _) => return held.push((id, job)),
            (None, Some(station)) => effects.jobs.push((station.clone(), job)),
            (None, None) => {}
        }
        if self.disturbed.remove(&id) {
            self.tell_of_launch(Event::Begun(launch), now);
        }
    }

    /// From now on jobs wait.
    pub(crate) fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// A launch is not like others: there is nothing to be done about it.
    fn tell_of_launch(&mut self, event: Event, now: Time) {
        let mut nothing = Vec::new();
        self.policy.react(event, now, &mut nothing);
        debug_assert_eq!(nothing, []);
    }

    /// From now on jobs run, first those that waited, which begin only now.
    pub(crate) fn release(&mut self, now: Time) {
        self.disturbed = self.partitions.keys().copied().collect();
        for (id, job) in self.held.take().unwrap_or_default() {
            self.disturbed.remove(&id);
            self.tell_of_launch(Event::Begun(job.launch), now);
            if let Some(partition) = self.partitions.get(&id) {
                partition.send(job);
            }
        }
    }

    /// A row of a request is not served, and with it the whole request: its other rows have nobody to wait for them.
    fn end(&mut self, request: RequestId, error: InferError, effects: &mut Effects) {
        if let Some(row) = self.waiting.remove(&request) {
            if let Some(place) = self.places.get(&row.call.model) {
                self.queued[place.index()] -= 1;
            }
            effects.answers.push((row.call, error));
        }
    }

    /// All that waits, in the order in which it came.
    pub(crate) fn take_waiting(&mut self) -> Vec<Piece> {
        self.queued.fill(0);
        let mut waiting: Vec<(RequestId, Row)> = self.waiting.drain().collect();
        waiting.sort_by_key(|(id, _)| *id);
        pieces(waiting.into_iter().map(|(_, row)| row))
    }
}

impl Prepared {
    /// Models that are ready on it, in the order of their ids.
    pub(crate) fn models(&self) -> impl Iterator<Item = ModelId> {
        let mut models: Vec<ModelId> = self.ready.keys().copied().collect();
        models.sort_unstable();
        models.into_iter()
    }

    fn send(&self, job: Job) {
        if let Some(station) = &self.station {
            station.run(job);
        }
    }
}
