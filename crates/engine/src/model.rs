//! A model as an engine serves it.

use std::sync::Arc;

use weft_device::LoadedModel;
use weft_ir::Dimensions;
use weft_scheduler::ServedModel;

/// A model that is loaded, and what was agreed about it.
#[derive(Clone)]
pub struct EngineModel {
    /// On the engine's device.
    pub loaded: Arc<dyn LoadedModel>,
    /// What its open dimensions are, but for the batch.
    pub dimensions: Dimensions,
    /// How long it takes, and what was promised; batches are no larger than the largest of its profile.
    pub served: ServedModel,
}
