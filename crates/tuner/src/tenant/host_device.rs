//! A device whose partitions run trials beside what they serve.

use std::sync::Arc;

use weft_device::{
    Device, DeviceDescription, DeviceError, LoadedModel, Mix, MixMember, Partition, TunableDevice,
    UnitSet,
};
use weft_ir::Graph;

use super::host_partition::HostPartition;

/// The device that it wraps in all, but that its partitions know the [`TrialModel`](super::TrialModel).
pub struct HostDevice {
    device: Arc<dyn Device>,
    tunable: Arc<dyn TunableDevice>,
}

impl HostDevice {
    /// Wraps a device, which is the same twice.
    pub fn new(device: Arc<dyn Device>, tunable: Arc<dyn TunableDevice>) -> Self {
        Self { device, tunable }
    }

    fn hosting(&self, partition: Arc<dyn Partition>, is_background: bool) -> Arc<dyn Partition> {
        Arc::new(HostPartition { partition, tunable: self.tunable.clone(), is_background })
    }
}

impl Device for HostDevice {
    fn description(&self) -> DeviceDescription {
        self.device.description()
    }

    fn load(&self, name: &str, graph: &Graph) -> Result<Arc<dyn LoadedModel>, DeviceError> {
        self.device.load(name, graph)
    }

    fn partition(&self, units: &UnitSet) -> Result<Arc<dyn Partition>, DeviceError> {
        Ok(self.hosting(self.device.partition(units)?, false))
    }

    fn can_interrupt(&self) -> bool {
        self.device.can_interrupt()
    }

    fn has_groups(&self) -> bool {
        self.device.has_groups()
    }

    fn background_partition(
        &self,
        units: &UnitSet,
    ) -> Option<Result<Arc<dyn Partition>, DeviceError>> {
        let partition = self.device.background_partition(units)?;
        Some(partition.map(|partition| self.hosting(partition, true)))
    }

    fn mix(
        &self,
        models: &[MixMember],
        units: &UnitSet,
    ) -> Option<Result<Box<dyn Mix>, DeviceError>> {
        self.device.mix(models, units)
    }
}
