//! Models made ready to be timed, and how long they are timed.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use weft_cpu::CpuDevice;
use weft_device::{Device, Executable, ExecutionReport, LoadedModel, Partition, UnitSet};
use weft_ir::{Graph, Value};

use super::statistics::median;
use crate::model_file::{self, DimensionOptions};

/// A model on a partition, with inputs.
pub(crate) struct Subject {
    pub(super) graph: Graph,
    pub(super) inputs: Vec<Value>,
    pub(super) executable: Box<dyn Executable>,
}

impl Subject {
    /// Loads a model file and prepares it for random inputs.
    pub(crate) fn new(
        path: &Path,
        batch: usize,
        dimensions: &DimensionOptions,
        device: &dyn Device,
        units: &UnitSet,
    ) -> Result<Self> {
        let graph = model_file::load(path)?;
        let shapes = dimensions.shapes(&graph, batch)?;
        let model = device.load(&model_file::name(path), &graph)?;
        Self::of_loaded(&*model, &shapes, &*device.partition(units)?)
    }

    /// Prepares a model that is loaded for random inputs of these shapes.
    pub(crate) fn of_loaded(
        model: &dyn LoadedModel,
        shapes: &[Vec<usize>],
        partition: &dyn Partition,
    ) -> Result<Self> {
        let graph = model.graph().clone();
        let inputs = model_file::random_inputs(&graph, shapes, 1)?;
        let executable = partition.prepare(model, shapes)?;
        Ok(Self { graph, inputs: inputs.into_iter().map(Value::Tensor).collect(), executable })
    }

    /// Runs once, and says how long it took in milliseconds.
    pub(super) fn time_once_ms(&self) -> Result<f64> {
        let start = Instant::now();
        self.executable.run(&self.inputs)?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }

    /// What the device made of the model.
    pub(crate) fn report(&self) -> &ExecutionReport {
        self.executable.report()
    }

    /// The median latency in milliseconds.
    pub(crate) fn median_ms(&self, budget: Duration) -> Result<f64> {
        Ok(median(&self.latencies_ms(1, budget)?))
    }

    /// Latencies in milliseconds over at least `least` runs and as many as fit into `budget`, after a warm-up.
    pub(super) fn latencies_ms(&self, least: usize, budget: Duration) -> Result<Vec<f64>> {
        self.time_once_ms()?;
        let start = Instant::now();
        let mut latencies = Vec::new();
        while latencies.len() < least || start.elapsed() < budget {
            latencies.push(self.time_once_ms()?);
        }
        Ok(latencies)
    }
}

/// The first `count` units of the device.
pub(super) fn first_units(device: &CpuDevice, count: usize) -> Result<UnitSet> {
    let units: UnitSet = device.units().iter().take(count).collect();
    anyhow::ensure!(
        count > 0 && units.len() == count,
        "{count} cores asked for, the device has {}",
        device.units().len()
    );
    Ok(units)
}
