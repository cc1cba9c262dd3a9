//! What a session is about: which operators, for partitions of which sizes.

use std::collections::BTreeMap;

use weft_device::{TunableDevice, UnitSet, bucket_sizes};
use weft_engine::{EngineModel, EngineStatus};
use weft_ir::Dimensions;
use weft_scheduler::UnitMask;
use weft_tuner::session::Task;

use super::error::TuningError;

/// A model that is served, by its name.
pub(super) type Served = (String, EngineModel);

/// What is tuned for partitions of one size.
pub(super) struct Share {
    /// In cores or SMs.
    pub(super) size: usize,
    /// How many units that is at least.
    pub(super) units: u32,
    pub(super) tasks: Vec<Task>,
}

/// Those of the models that are asked for; all where none is.
pub(super) fn chosen(served: &[Served], names: &[String]) -> Result<Vec<Served>, TuningError> {
    let is_served = |name: &&String| served.iter().any(|(other, _)| other == *name);
    if let Some(unknown) = names.iter().find(|name| !is_served(name)) {
        return Err(TuningError::UnknownModel(unknown.clone()));
    }
    let is_chosen = |(name, _): &&Served| names.is_empty() || names.contains(name);
    let chosen: Vec<Served> = served.iter().filter(is_chosen).cloned().collect();
    if chosen.is_empty() { Err(TuningError::NothingServed) } else { Ok(chosen) }
}

/// The units of a partition, which the engine numbers among all that it serves on.
pub(super) fn units_of(all: &UnitSet, partition: UnitMask) -> UnitSet {
    partition.iter().filter_map(|unit| all.as_slice().get(unit as usize).copied()).collect()
}

/// The operators of the models, for each size of the partitions that they are served on.
pub(super) fn shares(
    device: &dyn TunableDevice,
    all_units: &UnitSet,
    models: &[Served],
    batches: &[usize],
    status: &EngineStatus,
) -> Result<Vec<Share>, TuningError> {
    let mut sizes: BTreeMap<usize, u32> = BTreeMap::new();
    for partition in &status.partitions {
        if models.iter().any(|(_, model)| partition.models.contains(&model.key)) {
            let units = units_of(all_units, partition.units);
            let least = sizes.entry(device.size_of(&units)).or_insert(u32::MAX);
            *least = partition.units.len().min(*least);
        }
    }
    let mut shares = Vec::new();
    for (size, units) in sizes {
        let tasks = tasks(device, models, batches, size)?;
        if !tasks.is_empty() {
            shares.push(Share { size, units, tasks });
        }
    }
    if shares.is_empty() { Err(TuningError::NothingToTune) } else { Ok(shares) }
}

/// The operators of all models at all batch sizes, each once.
fn tasks(
    device: &dyn TunableDevice,
    models: &[Served],
    batches: &[usize],
    size: usize,
) -> Result<Vec<Task>, TuningError> {
    let mut tasks: Vec<Task> = Vec::new();
    for (_, model) in models {
        let batches = match batches.is_empty() {
            true => bucket_sizes(model.served.largest_batch() as usize),
            false => batches.to_vec(),
        };
        let mut all_shapes: Vec<Vec<Vec<usize>>> = Vec::new();
        for batch in batches {
            let dimensions = Dimensions { batch, ..model.dimensions.clone() };
            let shapes = model.loaded.graph().input_shapes(&dimensions)?;
            // A model without a batch has the same shapes at each.
            if !all_shapes.contains(&shapes) {
                all_shapes.push(shapes);
            }
        }
        for shapes in all_shapes {
            for operator in device.operators(&*model.loaded, &shapes, size)? {
                Task::add(&mut tasks, operator);
            }
        }
    }
    Ok(tasks)
}
