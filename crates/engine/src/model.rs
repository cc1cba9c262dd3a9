//! A model as an engine serves it.

use std::sync::Arc;

use weft_device::LoadedModel;
use weft_ir::Dimensions;
use weft_scheduler::plan::Slo;
use weft_scheduler::{Profile, ServedModel};

/// A model that is loaded, and what was agreed about it.
#[derive(Clone)]
pub struct EngineModel {
    /// On the engine's device.
    pub loaded: Arc<dyn LoadedModel>,
    /// What its open dimensions are, but for the batch.
    pub dimensions: Dimensions,
    /// How long it takes; batches are no larger than the largest there.
    pub profile: Arc<Profile>,
    /// What was promised; `None` is best effort.
    pub slo: Option<Slo>,
    /// Requests per second that are expected, before any has come.
    pub expected_per_s: f64,
    /// Its share under overload.
    pub weight: f64,
    /// Under overload, models of a higher priority are served before those of a lower one.
    pub priority: u8,
}

impl EngineModel {
    pub(crate) fn largest_batch(&self) -> u32 {
        self.profile.batches().last().copied().unwrap_or(1)
    }

    pub(crate) fn served(&self) -> ServedModel {
        ServedModel {
            profile: self.profile.clone(),
            slo: self.slo,
            expected_per_s: self.expected_per_s,
            weight: self.weight,
            priority: self.priority,
        }
    }
}
