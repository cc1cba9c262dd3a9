//! A model as an engine serves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use weft_device::LoadedModel;
use weft_ir::Dimensions;
use weft_scheduler::ServedModel;

/// What an engine knows a model by; never used twice in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelKey(u64);

impl ModelKey {
    /// One that no model has.
    pub fn unused() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A model that is loaded, and what was agreed about it.
#[derive(Clone)]
pub struct EngineModel {
    /// Requests ask for it by this.
    pub key: ModelKey,
    /// On the engine's device.
    pub loaded: Arc<dyn LoadedModel>,
    /// What its open dimensions are, but for the batch.
    pub dimensions: Dimensions,
    /// How long it takes, and what was promised; batches are no larger than the largest of its profile.
    pub served: ServedModel,
    /// What its requests may ask for.
    pub limits: ModelLimits,
}

/// What requests for a model may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelLimits {
    /// Where so many rows wait, no further request is taken in.
    pub max_queue: usize,
    /// The timeout of requests that name none.
    pub timeout: Option<Duration>,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self { max_queue: usize::MAX, timeout: None }
    }
}
