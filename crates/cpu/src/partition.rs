//! A partition of cores, on which one batch runs at a time, and can be interrupted by another.

use std::sync::Arc;

use weft_device::{DeviceError, Executable, LoadedModel, NewGroup, Partition, UnitSet};

use crate::choices::Choices;
use crate::group::CpuGroup;
use crate::lane::Lane;
use crate::model::CpuModel;
use crate::plan::{CpuExecutable, Planning, build, let_go};
use crate::{Isa, Priority};

/// A set of cores with a worker pinned to each.
pub(crate) struct CpuPartition {
    units: UnitSet,
    isa: Isa,
    choices: Choices,
    lane: Arc<Lane>,
}

impl CpuPartition {
    /// Models are prepared with what `choices` hold at that time.
    pub(crate) fn new(
        units: &UnitSet,
        isa: Isa,
        priority: Priority,
        choices: Choices,
    ) -> Result<Self, DeviceError> {
        let lane = Arc::new(Lane::new(units, isa, priority)?);
        Ok(Self { units: units.clone(), isa, choices, lane })
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
        let model = CpuModel::of(model)?;
        let graph = model.specialise(shapes)?;
        // Weights that rewrites have changed were copied; packing reads the others again, one after another.
        model.graph.values().iter().filter_map(|value| value.constant.as_ref()).for_each(let_go);
        let choices = self.choices.current();
        let (weights, workers) = (&model.weights, self.units.len());
        let planning = Planning { weights, isa: self.isa, workers, choices: choices.as_deref() };
        let plan = build(graph, &planning);
        Ok(Box::new(CpuExecutable::new(&model.name, plan, self.lane.clone())))
    }

    fn prepare_group(
        &self,
        model: &dyn LoadedModel,
        shapes: &[Vec<usize>],
        entries: usize,
    ) -> Option<Result<NewGroup, DeviceError>> {
        let prepare = || {
            let (lane, choices) = (self.lane.clone(), self.choices.current());
            let (model, cores) = (CpuModel::of(model)?, self.units.len());
            let (group, first) =
                CpuGroup::new(lane, self.isa, cores, choices, model, shapes, entries)?;
            Ok(NewGroup { group: Box::new(group), first })
        };
        Some(prepare())
    }
}
