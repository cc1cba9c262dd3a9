//! The CPU as a device whose kernels can be tuned.

use std::sync::Arc;

use weft_device::{
    Bench, DeviceError, KernelChoices, LoadedModel, Platform, TunableDevice, TunableOperator,
    UnitSet,
};

use super::bench::CpuBench;
use super::fused_operator::FusedOperator;
use super::operator::CpuOperator;
use super::platform::platform;
use crate::device::processor_name;
use crate::model::CpuModel;
use crate::plan::fused_operators;
use crate::{CpuDevice, Priority};

impl TunableDevice for CpuDevice {
    fn platform(&self) -> Platform {
        platform(&processor_name(), self.isa())
    }

    fn size(&self) -> usize {
        self.cores().len()
    }

    fn size_of(&self, units: &UnitSet) -> usize {
        units.len()
    }

    fn disjoint_partitions(&self, size: usize) -> Vec<UnitSet> {
        let parts = self.cores().chunks_exact(size.max(1));
        parts.map(|cores| cores.iter().copied().collect()).collect()
    }

    /// A core has its own caches, and what several do together does not show on one.
    fn screening_size(&self, size: usize) -> usize {
        size
    }

    fn operators(
        &self,
        model: &dyn LoadedModel,
        shapes: &[Vec<usize>],
        size: usize,
    ) -> Result<Vec<Arc<dyn TunableOperator>>, DeviceError> {
        let graph = CpuModel::of(model)?.specialise(shapes)?;
        let mut distinct: Vec<(FusedOperator, usize)> = Vec::new();
        for operator in fused_operators(&graph, self.isa(), size) {
            match distinct.iter_mut().find(|(known, _)| *known == operator) {
                Some((_, occurrences)) => *occurrences += 1,
                None => distinct.push((operator, 1)),
            }
        }
        let tunable = distinct.into_iter().filter_map(|(operator, occurrences)| {
            let operator = CpuOperator::new(operator, occurrences, self.isa(), size)?;
            Some(Arc::new(operator) as Arc<dyn TunableOperator>)
        });
        Ok(tunable.collect())
    }

    fn bench(&self, units: &UnitSet) -> Result<Box<dyn Bench>, DeviceError> {
        self.bench_of(units, Priority::Normal)
    }

    fn background_bench(&self, units: &UnitSet) -> Option<Result<Box<dyn Bench>, DeviceError>> {
        Some(self.bench_of(units, Priority::Background))
    }

    fn use_choices(&self, choices: Arc<dyn KernelChoices>) {
        self.choices.set(choices);
    }
}

impl CpuDevice {
    fn bench_of(&self, units: &UnitSet, priority: Priority) -> Result<Box<dyn Bench>, DeviceError> {
        self.check_units(units)?;
        Ok(Box::new(CpuBench::new(units, self.isa(), priority)?))
    }
}
