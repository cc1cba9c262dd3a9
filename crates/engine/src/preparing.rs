//! The thread that makes partitions and models ready, one after another, beside what is served. It keeps what it made, so
//! that a service which wants what another one had gets it at once.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;

use weft_device::{
    Buckets, Device, DeviceError, Group, NewGroup, Partition, UnitSet, bucket_sizes,
};
use weft_ir::Dimensions;
use weft_scheduler::{GroupId, ModelId, PartitionId, UnitMask};

use crate::beside;
use crate::model::{EngineModel, Membership, ModelKey};
use crate::seat::{ReadyModel, Seat};
use crate::service::{Generation, Layer, Message, Preparation, Ready};
use crate::shared::Shared;
use crate::station::Station;

/// Partitions of different layers may have the same units.
type Place = (UnitMask, Layer);

enum Task {
    Begin(Weak<Shared>),
    Prepare(Generation, Preparation),
    Discard(Generation, Place),
    KeepFrom(Generation),
    Forget(Vec<Generation>),
}

/// The way to the thread, which ends when this is dropped.
pub(crate) struct Preparer {
    tasks: Sender<Task>,
}

impl Preparer {
    pub(crate) fn start(device: Arc<dyn Device>, units: UnitSet) -> std::io::Result<Self> {
        let (tasks, received) = channel();
        let mut bench = Bench { device, units, shared: Weak::new(), stations: HashMap::new() };
        thread::Builder::new().name("weft-prepare".into()).spawn(move || bench.work(&received))?;
        Ok(Self { tasks })
    }

    /// Tells this engine what is ready from now on.
    pub(crate) fn tells(&self, shared: Weak<Shared>) {
        self.send(Task::Begin(shared));
    }

    pub(crate) fn prepare(&self, generation: Generation, preparation: Preparation) {
        self.send(Task::Prepare(generation, preparation));
    }

    /// Lets go of a partition, unless a later service has asked for it.
    pub(crate) fn discard(&self, generation: Generation, place: Place) {
        self.send(Task::Discard(generation, place));
    }

    /// Lets go of what neither this service nor a later one has asked for.
    pub(crate) fn keep_from(&self, generation: Generation) {
        self.send(Task::KeepFrom(generation));
    }

    /// Lets go of what only these services have asked for, which have come to nothing.
    pub(crate) fn forget(&self, generations: Vec<Generation>) {
        self.send(Task::Forget(generations));
    }

    fn send(&self, task: Task) {
        // The thread ends only when its sender is dropped.
        let _ = self.tasks.send(task);
    }
}

struct Bench {
    device: Arc<dyn Device>,
    /// All units of the device, by the numbers that the scheduler counts them with.
    units: UnitSet,
    shared: Weak<Shared>,
    stations: HashMap<Place, Kept>,
}

struct Kept {
    station: Arc<Station>,
    models: HashMap<(ModelKey, Option<GroupId>), (ReadyModel, Wanted)>,
    /// Those that have members.
    groups: HashMap<GroupId, Weak<dyn Group>>,
    wanted: Wanted,
}

/// The services that have asked for something, and are not known to be gone.
#[derive(Default)]
struct Wanted(BTreeSet<Generation>);

impl Wanted {
    fn by(&mut self, generation: Generation) {
        self.0.insert(generation);
    }

    /// Some services are gone; says whether another one wants it.
    fn without(&mut self, is_gone: impl Fn(Generation) -> bool) -> bool {
        self.0.retain(|generation| !is_gone(*generation));
        !self.0.is_empty()
    }
}

impl Bench {
    fn work(&mut self, tasks: &Receiver<Task>) {
        while let Ok(task) = tasks.recv() {
            match task {
                Task::Begin(shared) => self.shared = shared,
                Task::Prepare(generation, preparation) => {
                    if self.is_wanted(generation) {
                        let partition = preparation.partition;
                        // Whoever asked waits for an answer, whatever happens here.
                        let prepare = || self.prepare(generation, &preparation);
                        let ready = catch_unwind(AssertUnwindSafe(prepare));
                        self.tell(generation, partition, ready.unwrap_or_else(|_| panicked()));
                    }
                }
                Task::Discard(generation, place) => {
                    let is_gone = |other: Generation| other <= generation;
                    self.stations
                        .retain(|other, kept| *other != place || kept.wanted.without(is_gone));
                }
                Task::KeepFrom(generation) => self.let_go(|other| other < generation),
                Task::Forget(generations) => self.let_go(|other| generations.contains(&other)),
            }
        }
    }

    /// Whether the service is there that has asked for something: it may have failed meanwhile.
    fn is_wanted(&self, generation: Generation) -> bool {
        self.shared.upgrade().is_some_and(|shared| shared.has(generation))
    }

    /// Lets go of what only services have asked for that are gone.
    fn let_go(&mut self, is_gone: impl Fn(Generation) -> bool) {
        self.stations.retain(|_, kept| kept.wanted.without(&is_gone));
        for kept in self.stations.values_mut() {
            kept.models.retain(|_, (_, wanted)| wanted.without(&is_gone));
            kept.groups.retain(|_, group| group.strong_count() > 0);
        }
    }

    fn tell(
        &self,
        generation: Generation,
        partition: PartitionId,
        ready: Result<Ready, DeviceError>,
    ) {
        if let Some(shared) = self.shared.upgrade() {
            if let Err(error) = &ready {
                shared.observer.preparation_failed(&error.to_string());
            }
            shared.tell(generation, Message::Prepared(partition, ready));
        }
    }

    fn prepare(
        &mut self,
        generation: Generation,
        preparation: &Preparation,
    ) -> Result<Ready, DeviceError> {
        // What is made ready beside others who are served holds them up at the device's driver.
        let is_serving = self.stations.values().any(|kept| !kept.models.is_empty());
        let thread_count = if is_serving { 1 } else { beside::thread_count() };
        let place = (preparation.units, preparation.layer);
        let kept = match self.stations.remove(&place) {
            Some(kept) => kept,
            None => self.open(place)?,
        };
        let kept = self.stations.entry(place).or_insert(kept);
        kept.wanted.by(generation);
        let models = kept.ready(&preparation.models, generation, thread_count)?;
        Ok(Ready { station: kept.station.clone(), models })
    }

    fn open(&self, (units, layer): Place) -> Result<Kept, DeviceError> {
        let all = self.units.as_slice();
        let units: UnitSet = units.iter().map(|unit| all[unit as usize]).collect();
        let partition = match layer {
            Layer::Foreground => self.device.partition(&units)?,
            Layer::Background => self.device.background_partition(&units).unwrap_or_else(|| {
                Err(DeviceError::Failed("the device has no background".into()))
            })?,
        };
        let name = format!("weft-units-{units}");
        let station = Station::start(name, partition, self.shared.clone()).map_err(cannot_start)?;
        let (station, wanted) = (Arc::new(station), Wanted::default());
        Ok(Kept { station, models: HashMap::new(), groups: HashMap::new(), wanted })
    }
}

impl Kept {
    /// Makes models ready that are not. The first of a group makes it, and the others join it.
    fn ready(
        &mut self,
        models: &[(ModelId, EngineModel)],
        generation: Generation,
        thread_count: usize,
    ) -> Result<Vec<(ModelId, ReadyModel)>, DeviceError> {
        let is_missing = |model: &&EngineModel| !self.models.contains_key(&identity(model));
        let mut missing: Vec<EngineModel> =
            models.iter().map(|(_, model)| model).filter(is_missing).cloned().collect();
        while !missing.is_empty() {
            let mut opened = HashSet::new();
            let (now, later) = missing.into_iter().partition(|model| match group_of(model) {
                None => true,
                Some(group) => self.present(group).is_some() || opened.insert(group),
            });
            self.prepare(now, generation, thread_count)?;
            missing = later;
        }
        let ready = models.iter().map(|(id, model)| {
            let (ready, wanted) = self.models.get_mut(&identity(model)).expect("made ready above");
            wanted.by(generation);
            (*id, ready.clone())
        });
        Ok(ready.collect())
    }

    /// The group, where it has members.
    fn present(&self, group: GroupId) -> Option<Arc<dyn Group>> {
        self.groups.get(&group)?.upgrade()
    }

    /// Makes models ready side by side; those of one group that is not there yet come one at a time.
    fn prepare(
        &mut self,
        models: Vec<EngineModel>,
        generation: Generation,
        thread_count: usize,
    ) -> Result<(), DeviceError> {
        let present = |model: EngineModel| {
            let group = group_of(&model).and_then(|group| self.present(group));
            (model, group)
        };
        let waiting: Vec<_> = models.into_iter().map(present).collect();
        let partition = self.station.partition.clone();
        // Not on this thread: the workers of partitions begin here, and would step back with it.
        let prepare = move |(model, present)| {
            prepare(&*partition, &model, present).map(|ready| (model, ready))
        };
        let prepared = beside::spawn_all("weft-buckets", thread_count, waiting, prepare);
        for ready in prepared.map_err(cannot_start)? {
            let (model, ready) = ready?;
            if let (Some(group), Some(seat)) = (group_of(&model), &ready.seat) {
                self.groups.insert(group, Arc::downgrade(&seat.group));
            }
            let mut wanted = Wanted::default();
            wanted.by(generation);
            self.models.insert(identity(&model), (ready, wanted));
        }
        Ok(())
    }
}

fn group_of(model: &EngineModel) -> Option<GroupId> {
    model.group.as_ref().map(Membership::id)
}

/// What a model that is ready is found by.
fn identity(model: &EngineModel) -> (ModelKey, Option<GroupId>) {
    (model.key, group_of(model))
}

/// Makes a model ready by itself, and in its group: in the one that there is, or else a new one. A group's entries are of one
/// row each, so that its members need no larger batch.
fn prepare(
    partition: &dyn Partition,
    model: &EngineModel,
    present: Option<Arc<dyn Group>>,
) -> Result<ReadyModel, DeviceError> {
    let EngineModel { loaded, dimensions, .. } = model;
    let sizes = match model.group {
        Some(_) => vec![1],
        None => bucket_sizes(model.served.largest_batch() as usize),
    };
    let buckets = Arc::new(Buckets::prepare(partition, &**loaded, &sizes, dimensions)?);
    let seat = match (&model.group, present) {
        (None, _) => None,
        (Some(_), Some(group)) => Some(Seat::in_group(group, &**loaded)?),
        (Some(membership), None) => Some(new_group(partition, model, membership)?),
    };
    Ok(ReadyModel { buckets, seat: seat.map(Arc::new) })
}

fn new_group(
    partition: &dyn Partition,
    model: &EngineModel,
    membership: &Membership,
) -> Result<Seat, DeviceError> {
    let EngineModel { loaded, dimensions, .. } = model;
    let one = Dimensions { batch: 1, ..dimensions.clone() };
    let shapes = loaded.graph().input_shapes(&one).map_err(|source| DeviceError::Model {
        model: loaded.name().into(),
        source: Box::new(source),
    })?;
    let made = partition.prepare_group(&**loaded, &shapes, membership.entries());
    let none = || Err(DeviceError::Failed("the device has no groups".into()));
    let made = made.unwrap_or_else(none);
    let NewGroup { group, first } = made.map_err(|error| error.at(loaded.name(), None))?;
    Ok(Seat { group: group.into(), member: first })
}

fn panicked<T>() -> Result<T, DeviceError> {
    Err(DeviceError::Failed("a panic while a partition was made ready".into()))
}

fn cannot_start(error: io::Error) -> DeviceError {
    DeviceError::Failed(format!("cannot start a thread: {error}"))
}
