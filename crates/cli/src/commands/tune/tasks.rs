//! The operators of the models that are tuned, each once.

use anyhow::{Context, Result};
use weft_tuner::session::Task;

use super::Options;
use crate::device::OpenDevice;
use crate::model_file;

/// The operators of all models at all batch sizes, on partitions of one size.
pub(super) fn of_models(options: &Options, device: &OpenDevice, size: usize) -> Result<Vec<Task>> {
    let mut tasks: Vec<Task> = Vec::new();
    for model in &options.models {
        let graph = model_file::load(&model_file::resolve(model)?)?;
        let name = model_file::name_of(model)?;
        let loaded = device.as_device().load(&name, &graph)?;
        for &batch in &options.batches {
            let shapes = options.dimensions.shapes(&graph, batch)?;
            let operators = device.as_tunable().operators(&*loaded, &shapes, size);
            for operator in operators.with_context(|| format!("{name} at batch {batch}"))? {
                let occurrences = operator.occurrences() as f64;
                match tasks.iter_mut().find(|task| task.operator.key() == operator.key()) {
                    Some(task) => task.occurrences += occurrences,
                    None => tasks.push(Task { operator, occurrences, known: Vec::new() }),
                }
            }
        }
    }
    Ok(tasks)
}
