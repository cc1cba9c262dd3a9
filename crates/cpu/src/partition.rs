//! A partition of cores: a pinned pool and the arena that its models share, since one batch runs there at a time.

use std::sync::{Arc, Mutex};

use weft_device::{DeviceError, Executable, LoadedModel, Partition, UnitSet};

use crate::model::CpuModel;
use crate::plan::{CpuExecutable, build, let_go};
use crate::{AlignedBuffer, Isa, Pool, Priority};

/// What runs on one partition: its pool, and its arena.
pub(crate) struct Lane {
    pub(crate) pool: Pool,
    pub(crate) arena: Mutex<Arena>,
}

/// Memory for activations, grown to the largest plan that has run.
pub(crate) struct Arena(AlignedBuffer);

impl Arena {
    /// The first `elements` values, whose content is whatever was left there.
    pub(crate) fn of_at_least(&mut self, elements: usize) -> Result<&mut [f32], DeviceError> {
        if self.0.len() < elements {
            self.0 = AlignedBuffer::empty();
            self.0 = AlignedBuffer::zeroed(elements)
                .map_err(|error| DeviceError::Failed(error.to_string()))?;
        }
        Ok(&mut self.0[..elements])
    }
}

/// A set of cores with a worker pinned to each.
pub(crate) struct CpuPartition {
    units: UnitSet,
    isa: Isa,
    lane: Arc<Lane>,
}

impl CpuPartition {
    pub(crate) fn new(units: &UnitSet, isa: Isa, priority: Priority) -> Result<Self, DeviceError> {
        let pool = Pool::with_priority(units.as_slice(), isa, priority)
            .map_err(|error| DeviceError::Failed(error.to_string()))?;
        let arena = Mutex::new(Arena(AlignedBuffer::empty()));
        Ok(Self { units: units.clone(), isa, lane: Arc::new(Lane { pool, arena }) })
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
