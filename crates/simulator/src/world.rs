//! What is simulated: a device, the models on it, and how they are asked for.

use std::sync::Arc;

use weft_scheduler::{Profile, Span};

use crate::arrivals::Load;

/// One model and its requests.
#[derive(Clone, Debug)]
pub struct SimulatedModel {
    /// The name in reports.
    pub name: String,
    /// How long it really takes, but for noise.
    pub profile: Arc<Profile>,
    /// How its requests come.
    pub load: Load,
    /// From arrival to deadline; `None` for best-effort work.
    pub slo: Option<Span>,
}

/// One device, its models and its imperfections.
#[derive(Clone, Debug)]
pub struct World {
    /// The models, in the order of their ids.
    pub models: Vec<SimulatedModel>,
    /// Units of the device.
    pub units: u32,
    /// How long making a partition takes.
    pub preparation: Span,
    /// How far durations stray from the profile: the standard deviation of a factor around 1.
    pub noise: f64,
    /// How long requests come.
    pub length: Span,
    /// What everything is drawn from.
    pub seed: u64,
}

impl World {
    /// The models' profiles, in the order of their ids.
    pub fn profiles(&self) -> Vec<Arc<Profile>> {
        self.models.iter().map(|model| model.profile.clone()).collect()
    }
}
