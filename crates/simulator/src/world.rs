//! What is simulated: a device, the models on it, and how they are asked for.

use std::sync::Arc;

use weft_scheduler::plan::Slo;
use weft_scheduler::{GroupId, ModelId, Profile, ServedDevice, ServedModel, Span, Time};

use crate::lateness::Lateness;
use crate::load::Load;

/// One model and its requests.
#[derive(Clone, Debug)]
pub struct SimulatedModel {
    /// The name in reports.
    pub name: String,
    /// How long it really takes, but for noise.
    pub profile: Arc<Profile>,
    /// How its requests come.
    pub load: Load,
    /// What was promised; `None` for best-effort work.
    pub slo: Option<Slo>,
    /// What an answer in time is worth, in relation to the other models'.
    pub weight: f64,
    /// Under overload, models of a higher priority are served before those of a lower one.
    pub priority: u8,
    /// The group that it is a member of, whose requests can run together: all of a group have the same profile, objective
    /// and priority.
    pub group: Option<GroupId>,
    /// How its requests come late, if they do.
    pub late: Option<Lateness>,
}

/// Batches of different models that the device can run together.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedMix {
    /// The models, in the order of their ids, and the size of each one's batch.
    pub models: Vec<(ModelId, u32)>,
    /// How long they really take together on all units, but for noise.
    pub latency: Span,
    /// How long regulating them takes, beside what is served.
    pub regulation: Span,
}

/// One device, its models and its imperfections.
#[derive(Clone, Debug)]
pub struct World {
    /// The models, in the order of their ids.
    pub models: Vec<SimulatedModel>,
    /// Units of the device.
    pub units: u32,
    /// Of the device's memory.
    pub bandwidth_bytes_per_s: f64,
    /// Of the device's memory.
    pub memory_bytes: u64,
    /// Whether a launch can interrupt another on the same partition.
    pub can_interrupt: bool,
    /// How long making a partition ready takes while serving, and each model on it. Before the first request comes,
    /// everything has the time that it takes.
    pub preparation: Span,
    /// See `preparation`.
    pub preparation_per_model: Span,
    /// How long solving a task to plan takes while serving.
    pub planning: Span,
    /// The mixes that gain something. Those that do not are found out after `planning`.
    pub mixes: Vec<SimulatedMix>,
    /// How far durations stray from the profile: the standard deviation of a factor around 1.
    pub noise: f64,
    /// How long requests come.
    pub length: Span,
    /// What everything is drawn from.
    pub seed: u64,
}

impl World {
    /// The same world with all rates multiplied.
    pub fn scaled(&self, factor: f64) -> Self {
        let mut world = self.clone();
        for model in &mut world.models {
            model.load = model.load.scaled(factor);
        }
        world
    }

    /// Whether requests of two models may run in one launch: of the same, or of members of one group.
    pub fn can_run_together(&self, one: ModelId, other: ModelId) -> bool {
        let group = |model: ModelId| self.models[model.index()].group;
        one == other || (group(one).is_some() && group(one) == group(other))
    }

    /// What a mix takes on so many units, as a share of what its batches take one after another.
    pub(crate) fn share_of(&self, mix: &SimulatedMix, units: u32) -> f64 {
        let alone = |&(model, count): &(ModelId, u32)| {
            self.models[model.index()].profile.latency(count, units).us()
        };
        mix.latency.us() / mix.models.iter().map(alone).sum::<f64>()
    }

    /// The same device without its models.
    pub(crate) fn without_models(&self) -> Self {
        Self { models: Vec::new(), mixes: Vec::new(), ..*self }
    }

    /// The rate at which a model's requests come at an instant. Clients wait for answers, which take at least as long as
    /// on a device of their own.
    fn expected_per_s(&self, model: &SimulatedModel, at: Time) -> f64 {
        match model.load {
            Load::ClosedLoop { clients, think } => {
                let cycle = think + model.profile.latency(1, self.units);
                f64::from(clients) / cycle.seconds()
            }
            ref load => load.rate_per_s(at),
        }
    }

    /// What a policy is told: the device, its models and the rates at which their requests begin to come.
    pub fn served_device(&self) -> ServedDevice {
        let models = self.models.iter().map(|model| ServedModel {
            profile: model.profile.clone(),
            slo: model.slo,
            expected_per_s: self.expected_per_s(model, Time::START),
            weight: model.weight,
            priority: model.priority,
            group: model.group,
        });
        ServedDevice {
            models: models.collect(),
            units: self.units,
            bandwidth_bytes_per_s: self.bandwidth_bytes_per_s,
            memory_bytes: self.memory_bytes,
            can_interrupt: self.can_interrupt,
        }
    }
}
