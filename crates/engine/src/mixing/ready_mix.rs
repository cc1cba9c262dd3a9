//! A mix that is ready to be launched.

use std::sync::{Mutex, PoisonError};

use weft_device::DeviceError;
use weft_ir::Value;

use crate::model::ModelKey;
use crate::regulation::RegulatedMix;

/// A mix with its schedule, and whose models they are.
pub(crate) struct ReadyMix {
    /// In the order of the mix, with the size of each one's batch.
    pub(crate) models: Vec<(ModelKey, u32)>,
    mix: Mutex<RegulatedMix>,
}

impl ReadyMix {
    pub(crate) fn new(models: Vec<(ModelKey, u32)>, mix: RegulatedMix) -> Self {
        Self { models, mix: Mutex::new(mix) }
    }

    /// Runs all models on the inputs of their batches.
    pub(crate) fn run(&self, inputs: &[Vec<Value>]) -> Result<Vec<Vec<Value>>, DeviceError> {
        // What a run that panicked has left is written anew by each.
        self.mix.lock().unwrap_or_else(PoisonError::into_inner).run(inputs)
    }
}
