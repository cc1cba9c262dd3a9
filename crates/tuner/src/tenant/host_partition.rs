//! A partition that runs trials beside what it serves.

use std::sync::Arc;

use weft_device::{
    Bench, DeviceError, Executable, LoadedModel, NewGroup, Partition, TunableDevice, UnitSet,
};

use super::executable::TrialExecutable;
use super::trial_model::TrialModel;

pub(super) struct HostPartition {
    pub(super) partition: Arc<dyn Partition>,
    pub(super) tunable: Arc<dyn TunableDevice>,
    pub(super) is_background: bool,
}

impl HostPartition {
    /// A bench on exactly so many cores or SMs of the partition; `None` where it has no such part.
    fn bench(&self, size: usize) -> Result<Option<Box<dyn Bench>>, DeviceError> {
        let Some(units) = self.part(size) else { return Ok(None) };
        let background = match self.is_background {
            true => self.tunable.background_bench(&units),
            false => None,
        };
        background.unwrap_or_else(|| self.tunable.bench(&units)).map(Some)
    }

    /// Units of the partition with exactly so many cores or SMs.
    fn part(&self, size: usize) -> Option<UnitSet> {
        let mut part = UnitSet::default();
        for unit in self.partition.units().iter() {
            let larger: UnitSet = part.iter().chain([unit]).collect();
            if self.tunable.size_of(&larger) <= size {
                part = larger;
            }
        }
        (!part.is_empty() && self.tunable.size_of(&part) == size).then_some(part)
    }
}

impl Partition for HostPartition {
    fn units(&self) -> &UnitSet {
        self.partition.units()
    }

    fn prepare(
        &self,
        model: &dyn LoadedModel,
        shapes: &[Vec<usize>],
    ) -> Result<Box<dyn Executable>, DeviceError> {
        let Some(trials) = model.as_any().downcast_ref::<TrialModel>() else {
            return self.partition.prepare(model, shapes);
        };
        let bench = self.bench(trials.size())?;
        Ok(Box::new(TrialExecutable::new(trials.trials.clone(), bench)))
    }

    fn prepare_group(
        &self,
        model: &dyn LoadedModel,
        shapes: &[Vec<usize>],
        entries: usize,
    ) -> Option<Result<NewGroup, DeviceError>> {
        self.partition.prepare_group(model, shapes, entries)
    }
}
