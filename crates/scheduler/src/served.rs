//! What a policy is made for: one device and the models that it serves.

use std::sync::Arc;

use crate::identity::{GroupId, ModelId};
use crate::plan::Slo;
use crate::profile::Profile;

/// One model and what was agreed about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedModel {
    /// How long it takes.
    pub profile: Arc<Profile>,
    /// What was promised; `None` is best effort.
    pub slo: Option<Slo>,
    /// Requests per second that are expected, before any has come.
    pub expected_per_s: f64,
    /// What an answer in time is worth, in relation to the other models': its share under overload.
    pub weight: f64,
    /// Under overload, models of a higher priority are served before those of a lower one.
    pub priority: u8,
    /// The group that it is a member of: all of a group have the same profile, objective and priority.
    pub group: Option<GroupId>,
}

impl ServedModel {
    /// The largest batch that was measured.
    pub fn largest_batch(&self) -> u32 {
        self.profile.batches().last().copied().unwrap_or(1)
    }
}

/// One device and its models.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedDevice {
    /// The models, in the order of their ids.
    pub models: Vec<ServedModel>,
    /// Units to divide.
    pub units: u32,
    /// Of its memory.
    pub bandwidth_bytes_per_s: f64,
    /// Of its memory.
    pub memory_bytes: u64,
    /// Whether a launch can interrupt another on the same partition, which pauses meanwhile.
    pub can_interrupt: bool,
}

impl ServedDevice {
    /// By model, the one that stands for it: the first of its group, or itself. What is learned about the one holds for
    /// the other.
    pub fn leads(&self) -> Vec<ModelId> {
        let lead = |(index, model): (usize, &ServedModel)| {
            let is_mate = |other: &ServedModel| other.group.is_some() && other.group == model.group;
            ModelId(self.models[..index].iter().position(is_mate).unwrap_or(index) as u32)
        };
        self.models.iter().enumerate().map(lead).collect()
    }

    /// Every model at its largest batch.
    pub fn all_models(&self) -> Vec<(ModelId, u32)> {
        let models = self.models.iter().enumerate();
        models.map(|(index, model)| (ModelId(index as u32), model.largest_batch())).collect()
    }
}
