//! The CPU as a device: its units are cores.

use std::sync::Arc;

use weft_device::{
    Device, DeviceDescription, DeviceError, LoadedModel, Mix, MixMember, Partition, UnitSet,
};
use weft_ir::Graph;

use crate::choices::Choices;
use crate::mix::CpuMix;
use crate::model::CpuModel;
use crate::partition::CpuPartition;
use crate::weights::WeightStore;
use crate::{Isa, Priority};

/// The cores of this machine that the process may use.
#[derive(Debug)]
pub struct CpuDevice {
    isa: Isa,
    cores: Vec<usize>,
    pub(crate) choices: Choices,
}

impl CpuDevice {
    /// The device, with the best instruction set it offers.
    pub fn new() -> Result<Self, DeviceError> {
        Self::with_isa(Isa::detect())
    }

    /// The device with a given instruction set, which must be one that it offers.
    pub fn with_isa(isa: Isa) -> Result<Self, DeviceError> {
        let mut cores: Vec<usize> = core_affinity::get_core_ids()
            .unwrap_or_default()
            .into_iter()
            .map(|core| core.id)
            .collect();
        cores.sort_unstable();
        if cores.is_empty() {
            return Err(DeviceError::Failed(
                "the operating system names no core that this process may use".into(),
            ));
        }
        Ok(Self { isa, cores, choices: Choices::default() })
    }

    /// The instruction set its kernels use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// All its units.
    pub fn units(&self) -> UnitSet {
        self.cores.iter().copied().collect()
    }
}

impl Device for CpuDevice {
    fn description(&self) -> DeviceDescription {
        DeviceDescription {
            kind: "cpu",
            name: processor_name(),
            unit_count: self.cores.len(),
            unit: "core".into(),
            instruction_set: self.isa.name().into(),
            memory_bytes: memory_bytes(),
            peak_gflops_per_unit: None,
        }
    }

    fn load(&self, name: &str, graph: &Graph) -> Result<Arc<dyn LoadedModel>, DeviceError> {
        Ok(Arc::new(CpuModel {
            name: name.into(),
            graph: graph.clone(),
            weights: WeightStore::default(),
        }))
    }

    fn partition(&self, units: &UnitSet) -> Result<Arc<dyn Partition>, DeviceError> {
        self.partition_of(units, Priority::Normal)
    }

    fn can_interrupt(&self) -> bool {
        true
    }

    fn has_groups(&self) -> bool {
        true
    }

    fn background_partition(
        &self,
        units: &UnitSet,
    ) -> Option<Result<Arc<dyn Partition>, DeviceError>> {
        Some(self.partition_of(units, Priority::Background))
    }

    fn mix(
        &self,
        models: &[MixMember],
        units: &UnitSet,
    ) -> Option<Result<Box<dyn Mix>, DeviceError>> {
        Some(CpuMix::new(self, models, units).map(|mix| Box::new(mix) as Box<dyn Mix>))
    }
}

impl CpuDevice {
    fn partition_of(
        &self,
        units: &UnitSet,
        priority: Priority,
    ) -> Result<Arc<dyn Partition>, DeviceError> {
        self.check_units(units)?;
        Ok(Arc::new(CpuPartition::new(units, self.isa, priority, self.choices.clone())?))
    }
}

impl CpuDevice {
    /// Fails unless all are units of this device, and there is one.
    pub(crate) fn check_units(&self, units: &UnitSet) -> Result<(), DeviceError> {
        if units.is_empty() {
            return Err(DeviceError::NoUnits);
        }
        match units.iter().find(|unit| !self.cores.contains(unit)) {
            Some(unit) => {
                Err(DeviceError::NoSuchUnit { unit, available: self.units().to_string() })
            }
            None => Ok(()),
        }
    }

    pub(crate) fn cores(&self) -> &[usize] {
        &self.cores
    }
}

/// The value of a `key : value` line in one of the kernel's information files.
fn information(file: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_string())
    })
}

pub(crate) fn processor_name() -> String {
    information("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".into())
}

fn memory_bytes() -> Option<u64> {
    let text = information("/proc/meminfo", "MemTotal")?;
    text.trim_end_matches(" kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}
