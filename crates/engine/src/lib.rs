//! Models on a device, served in real time by a policy of the scheduler. The policy decides; here is what carries it out.

mod alarm;
mod beside;
mod call;
mod clock;
mod error;
mod execution;
mod group_profiling;
mod inheritance;
mod mixing;
mod model;
mod moments;
mod observer;
mod preparing;
mod profiling;
pub mod regulation;
mod seat;
mod service;
mod shared;
mod station;
mod status;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weft_device::{Device, UnitSet};
use weft_ir::Value;
use weft_scheduler::{Policy, ServedDevice, Time};

pub use beside::spawn as spawn_beside;
pub use call::{Answer, Claim, Reply, Submission};
pub use error::{InferError, StartError};
pub use group_profiling::measure_group;
pub use mixing::{FoundSchedule, KnownSchedules, MixOutcome, NoSchedules};
pub use model::{EngineModel, Membership, ModelKey, ModelLimits};
pub use observer::{LaunchRecord, Observer, Unobserved};
pub use profiling::{Profiling, ProfilingError, measure};
pub use status::{EngineStatus, ModelStatus, PartitionStatus, RunningStatus};

use alarm::Alarm;
use call::{Call, lock};
use inheritance::Inheritance;
use mixing::{MixMemory, Mixer};
use preparing::Preparer;
use service::{Generation, Layer, Service};
use shared::Shared;

/// The device that an engine serves on.
pub struct EngineDevice {
    /// The device itself.
    pub device: Arc<dyn Device>,
    /// The units that it may use.
    pub units: UnitSet,
    /// Of its memory.
    pub bandwidth_bytes_per_s: f64,
    /// For models, and for what mixes take beside them.
    pub memory_bytes: u64,
    /// Models without an objective run in the background of the others, where the device can do that.
    pub uses_background: bool,
    /// What is known of mixes from earlier; `None` where requests that come together are not regulated.
    pub schedules: Option<Arc<dyn KnownSchedules>>,
}

/// Makes the policy for a set of models.
pub type MakePolicy = Box<dyn Fn(ServedDevice) -> Box<dyn Policy> + Send + Sync>;

/// A running engine. Dropping it ends what was accepted, then stops.
pub struct Engine {
    shared: Arc<Shared>,
    make_policy: MakePolicy,
    units: u32,
    bandwidth_bytes_per_s: f64,
    memory_bytes: u64,
    uses_background: bool,
    can_interrupt: bool,
    generation: AtomicU64,
    /// Sets of models follow one another.
    changing: Mutex<()>,
}

impl Engine {
    /// An engine that serves no model yet.
    pub fn start(
        device: EngineDevice,
        make_policy: MakePolicy,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, StartError> {
        let units = u32::try_from(device.units.len()).unwrap_or(u32::MAX);
        let background = device.device.background_partition(&device.units);
        let uses_background = device.uses_background && matches!(background, Some(Ok(_)));
        let can_interrupt = device.device.can_interrupt();
        let mixer = Mixer {
            device: device.device.clone(),
            units: device.units.clone(),
            schedules: device.schedules,
            memory: MixMemory::new(device.memory_bytes),
        };
        let preparer = Preparer::start(device.device, device.units)?;
        let shared = Shared::new(observer, preparer, Alarm::start()?, mixer);
        shared.preparer.tells(Arc::downgrade(&shared));
        shared.alarm.wakes(Arc::downgrade(&shared));
        Ok(Self {
            shared,
            make_policy,
            units,
            bandwidth_bytes_per_s: device.bandwidth_bytes_per_s,
            memory_bytes: device.memory_bytes,
            uses_background,
            can_interrupt,
            generation: AtomicU64::new(0),
            changing: Mutex::new(()),
        })
    }

    /// Serves exactly these models from now on, and returns when it does. Requests that wait for models which stay are served
    /// as if nothing had happened; those that wait for others are answered with [`InferError::NotServed`], so let them
    /// [drain](Engine::waiting) first. What was learned of models that stay is known from the beginning. Where the models cannot
    /// be made ready, those before go on being served.
    pub fn serve(&self, models: Vec<EngineModel>) -> Result<(), StartError> {
        let _one_after_another = lock(&self.changing);
        let inheritance = Inheritance::of(&self.shared.services().current);
        let services = self.layers(models).into_iter().map(|(layer, models)| {
            let generation = Generation(self.generation.fetch_add(1, Ordering::Relaxed) + 1);
            let mut policy = (self.make_policy)(ServedDevice {
                models: models.iter().map(|model| model.served.clone()).collect(),
                units: self.units,
                bandwidth_bytes_per_s: self.bandwidth_bytes_per_s,
                memory_bytes: self.memory_bytes,
                can_interrupt: self.can_interrupt,
            });
            policy.start_from(inheritance.of_layer(layer, &models));
            Service::new(generation, layer, policy, models.into())
        });
        let services: Vec<Service> = services.collect();
        let generations: Vec<Generation> =
            services.iter().map(|service| service.generation).collect();
        let outcome = self.shared.change_to(services);
        match (&outcome, generations.iter().min()) {
            (Ok(()), Some(first)) => self.shared.preparer.keep_from(*first),
            _ => self.shared.preparer.forget(generations),
        }
        outcome.map_err(Into::into)
    }

    /// Which models are served in which layer: those without an objective in the background of the others, where the
    /// device can do that.
    fn layers(&self, models: Vec<EngineModel>) -> Vec<(Layer, Vec<EngineModel>)> {
        if !self.uses_background {
            return vec![(Layer::Foreground, models)];
        }
        let (promised, others): (Vec<_>, Vec<_>) =
            models.into_iter().partition(|model| model.served.slo.is_some());
        match (promised.is_empty(), others.is_empty()) {
            (false, false) => vec![(Layer::Foreground, promised), (Layer::Background, others)],
            (true, _) => vec![(Layer::Foreground, others)],
            (_, true) => vec![(Layer::Foreground, promised)],
        }
    }

    /// Takes in a request; `reply` is called once with what comes of it.
    pub fn submit(&self, submission: Submission, reply: Reply) -> Ticket {
        Ticket { call: self.shared.submit(submission, reply) }
    }

    /// Waits for the answer to one request of one row.
    pub fn infer(&self, model: ModelKey, inputs: Vec<Value>) -> Result<Answer, InferError> {
        let (answer, answered) = channel();
        let reply = Box::new(move |result| {
            let _ = answer.send(result);
        });
        let claim = Claim::default();
        self.submit(Submission { model, inputs, rows: 1, timeout: None, claim }, reply);
        answered.recv().unwrap_or(Err(InferError::Stopped))
    }

    /// Whether models without an objective run in the background of those that have one.
    pub fn has_background(&self) -> bool {
        self.uses_background
    }

    /// How many rows of a model's requests have not been answered.
    pub fn waiting(&self, model: ModelKey) -> usize {
        status::waiting(&self.shared.services(), model)
    }

    /// Mixes take no more of the device's memory together than this from now on, which is what models leave of it. Those for
    /// which there is no room are let go of, and none is made; until it is said they may take all of it.
    pub fn leave_to_mixes(&self, memory_bytes: u64) {
        self.shared.mixer.memory.limit_to(memory_bytes);
        self.shared.let_go_of_mixes();
    }

    /// What mixes take of the device's memory, besides what their models take.
    pub fn mix_memory_bytes(&self) -> u64 {
        self.shared.mixer.memory.taken_bytes()
    }

    /// What it does at this moment.
    pub fn status(&self) -> EngineStatus {
        status::of(&self.shared, self.units)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

/// A request that was submitted.
pub struct Ticket {
    call: Arc<Call>,
}

impl Ticket {
    /// From its arrival to its deadline, where it has one.
    pub fn allowed(&self) -> Option<Duration> {
        let (arrived, deadline) = (self.call.arrived, self.call.deadline);
        let allowed = Duration::from_nanos(deadline.since(arrived).nanos());
        (deadline != Time::NEVER).then_some(allowed)
    }

    /// Nobody wants the answer any more: what has not begun is not run, and the reply is not called.
    pub fn cancel(&self) {
        self.call.cancel();
    }
}
