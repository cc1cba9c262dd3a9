//! A partition of cores, on which one batch runs at a time, and can be interrupted by another.

use std::sync::Arc;

use weft_device::{DeviceError, Executable, LoadedModel, Partition, UnitSet};

use crate::lane::Lane;
use crate::model::CpuModel;
use crate::plan::{CpuExecutable, build, let_go};
use crate::{Isa, Priority};

/// A set of cores with a worker pinned to each.
pub(crate) struct CpuPartition {
    units: UnitSet,
    isa: Isa,
    lane: Arc<Lane>,
}

impl CpuPartition {
    pub(crate) fn new(units: &UnitSet, isa: Isa, priority: Priority) -> Result<Self, DeviceError> {
        let lane = Arc::new(Lane::new(units, isa, priority)?);
        Ok(Self { units: units.clone(), isa, lane })
    }
}

impl Partition for CpuPartition {
    fn units(&self) -> &UnitSet {
        &self.units
    }

    fn prepare(
        &self,
        model: &dyn LoadedModel,
        shapes: &[Vec<usize>],
    ) -> Result<Box<dyn Executable>, DeviceError> {
        let Some(model) = model.as_any().downcast_ref::<CpuModel>() else {
            return Err(DeviceError::ForeignModel { model: model.name().to_string() });
        };
        let graph = model.graph.specialise(shapes).map_err(|source| DeviceError::Model {
            model: model.name.clone(),
            source: Box::new(source),
        })?;
        // Weights that rewrites have changed were copied; packing reads the others again, one after another.
        model.graph.values().iter().filter_map(|value| value.constant.as_ref()).for_each(let_go);
        let plan = build(graph, &model.weights, self.isa, self.units.len());
        Ok(Box::new(CpuExecutable::new(&model.name, plan, self.lane.clone())))
    }
}
