//! The models that are tuned, and their operators, each once.

use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use weft_tuner::session::Task;

use crate::device::OpenDevice;
use crate::model_file::{self, DimensionOptions};

/// Which models, and at which batch sizes.
#[derive(Args, Clone, Debug)]
pub(crate) struct ModelSelection {
    /// The models: ONNX files, or zoo:NAME
    #[arg(required = true)]
    pub(crate) models: Vec<String>,
    /// Batch sizes
    #[arg(long, value_delimiter = ',', default_value = "1")]
    pub(crate) batches: Vec<usize>,
    #[command(flatten)]
    pub(crate) dimensions: DimensionOptions,
}

impl ModelSelection {
    /// The operators of all models at all batch sizes, on partitions of one size.
    pub(crate) fn tasks(&self, device: &OpenDevice, size: usize) -> Result<Vec<Task>> {
        ensure!(!self.batches.contains(&0), "--batches must be at least 1");
        let mut tasks: Vec<Task> = Vec::new();
        for model in &self.models {
            let graph = model_file::load(&model_file::resolve(model)?)?;
            let name = model_file::name_of(model)?;
            let loaded = device.as_device().load(&name, &graph)?;
            let find = |&batch: &usize| {
                let shapes = self.dimensions.shapes(&graph, batch)?;
                let operators = device.as_tunable().operators(&*loaded, &shapes, size);
                operators.with_context(|| format!("{name} at batch {batch}"))
            };
            let found: Vec<_> = thread::scope(|scope| {
                let started: Vec<_> =
                    self.batches.iter().map(|batch| scope.spawn(move || find(batch))).collect();
                started.into_iter().map(|thread| thread.join()).collect()
            });
            for operators in found {
                let operators = operators.map_err(|_| anyhow!("{name} could not be looked at"))?;
                for operator in operators? {
                    Task::add(&mut tasks, operator);
                }
            }
        }
        Ok(tasks)
    }
}
