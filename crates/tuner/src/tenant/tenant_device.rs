//! The device as a session sees it that is a tenant of it.

use std::collections::HashMap;
use std::sync::Arc;

use weft_device::{
    Bench, DeviceError, KernelChoices, LoadedModel, OperatorKey, Platform, TunableDevice,
    TunableOperator, UnitSet,
};
use weft_ir::Value;

use super::bench::TenantBench;
use super::trial_model::TrialModel;
use crate::session::Task;

/// The way to whoever serves the [`TrialModel`].
pub trait Turns: Send + Sync {
    /// Runs one request for the trial model when it is its turn, and returns when it has run.
    fn take(&self, inputs: Vec<Value>) -> Result<(), DeviceError>;
}

/// The operators of a session, as its benches find them.
pub(super) type Operators = HashMap<OperatorKey, Arc<dyn TunableOperator>>;

/// A device that is tuned in turns that whoever serves on it gives. Nothing is screened on less than what it is tuned for:
/// turns on partitions that are too small could not be told from others.
pub struct TenantDevice {
    device: Arc<dyn TunableDevice>,
    model: Arc<TrialModel>,
    turns: Arc<dyn Turns>,
    places: Vec<UnitSet>,
    operators: Arc<Operators>,
}

impl TenantDevice {
    /// The device for a session over these tasks, with turns for the trial model, which is served on the partitions
    /// `places`: as many trials are under way at once.
    pub fn new(
        device: Arc<dyn TunableDevice>,
        model: Arc<TrialModel>,
        turns: Arc<dyn Turns>,
        places: Vec<UnitSet>,
        tasks: &[Task],
    ) -> Self {
        let operators = tasks.iter().map(|task| &task.operator);
        let operators = operators.map(|operator| (operator.key().clone(), operator.clone()));
        Self { device, model, turns, places, operators: Arc::new(operators.collect()) }
    }
}

impl TunableDevice for TenantDevice {
    fn platform(&self) -> Platform {
        self.device.platform()
    }

    fn size(&self) -> usize {
        self.device.size()
    }

    fn size_of(&self, units: &UnitSet) -> usize {
        self.device.size_of(units)
    }

    fn disjoint_partitions(&self, size: usize) -> Vec<UnitSet> {
        if size == self.model.size() { self.places.clone() } else { Vec::new() }
    }

    fn screening_size(&self, size: usize) -> usize {
        size
    }

    fn operators(
        &self,
        model: &dyn LoadedModel,
        shapes: &[Vec<usize>],
        size: usize,
    ) -> Result<Vec<Arc<dyn TunableOperator>>, DeviceError> {
        self.device.operators(model, shapes, size)
    }

    fn bench(&self, _units: &UnitSet) -> Result<Box<dyn Bench>, DeviceError> {
        Ok(Box::new(TenantBench {
            trials: self.model.trials.clone(),
            size: self.model.size(),
            turns: self.turns.clone(),
            operators: self.operators.clone(),
        }))
    }

    fn use_choices(&self, choices: Arc<dyn KernelChoices>) {
        self.device.use_choices(choices);
    }
}
