//! The GPU that is measured, and models of the zoo on it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use weft_cuda::{CudaDevice, CudaExecutable, CudaModel, CudaOptions, CudaPartition, Precision};
use weft_device::{LoadedModel, UnitSet};
use weft_ir::{Graph, Value};
use weft_zoo::{Takes, ZooOptions};

/// Words of a sentence, or steps of a series, where the model can take as many.
const SEQUENCE: usize = 128;

/// A GPU, and the graphs that were built for it.
pub(super) struct Rig {
    device: CudaDevice,
    number: usize,
    options: CudaOptions,
    graphs: Mutex<HashMap<String, Graph>>,
}

impl Rig {
    /// Opens a GPU by its number.
    pub(super) fn open(number: usize, options: CudaOptions) -> Result<Self> {
        let device = CudaDevice::open(number, options)?;
        Ok(Self { device, number, options, graphs: Mutex::default() })
    }

    /// The same GPU once more. Partitions over the same units share a lane, but not with those of another opening.
    pub(super) fn once_more(&self) -> Result<Self> {
        Self::open(self.number, self.options)
    }

    pub(super) fn device(&self) -> &CudaDevice {
        &self.device
    }

    /// What models run at where nothing else is asked for.
    pub(super) fn precision(&self) -> Precision {
        self.options.precision
    }

    /// A model of the zoo; it is built once.
    pub(super) fn graph(&self, name: &str) -> Result<Graph> {
        let mut graphs = self.graphs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(graph) = graphs.get(name) {
            return Ok(graph.clone());
        }
        let graph = weft_zoo::build(name, &ZooOptions::default())?;
        graphs.insert(name.to_string(), graph.clone());
        Ok(graph)
    }

    /// Loads a model of the zoo.
    pub(super) fn load(&self, name: &str) -> Result<Arc<CudaModel>> {
        Ok(self.device.load_with_precision(name, &self.graph(name)?, self.precision()))
    }

    /// Loads a model of the zoo with weights of its own.
    pub(super) fn load_seeded(&self, name: &str, seed: u64) -> Result<Arc<CudaModel>> {
        let graph = weft_zoo::build(name, &ZooOptions { seed, image_side: None })?;
        Ok(self.device.load_with_precision(name, &graph, self.precision()))
    }

    /// The partition over a set of units.
    pub(super) fn partition(&self, units: &UnitSet) -> Result<Arc<CudaPartition>> {
        Ok(self.device.cuda_partition(units)?)
    }

    /// The partition over all units.
    pub(super) fn whole(&self) -> Result<Arc<CudaPartition>> {
        self.partition(&self.device.layout().all())
    }
}

/// Inputs for a model of the zoo.
pub(super) fn inputs(name: &str, batch: usize, seed: u64) -> Result<Vec<Value>> {
    let options = ZooOptions { seed, image_side: None };
    let entry = weft_zoo::entry(name)?;
    let sequence = match entry.takes {
        Takes::Tokens { longest, .. } => longest.min(SEQUENCE),
        Takes::Images { .. } | Takes::Series { .. } => SEQUENCE,
    };
    let tensors = weft_zoo::sample_inputs(entry, &options, batch, sequence)?;
    Ok(tensors.into_iter().map(Value::Tensor).collect())
}

/// The shapes of inputs.
pub(super) fn shapes(inputs: &[Value]) -> Vec<Vec<usize>> {
    inputs.iter().filter_map(Value::tensor).map(|tensor| tensor.shape().to_vec()).collect()
}

/// Prepares a model of the zoo at a batch, and puts inputs onto the GPU.
pub(super) fn prepare(
    model: &CudaModel,
    partition: &CudaPartition,
    batch: usize,
) -> Result<CudaExecutable> {
    let inputs = inputs(model.name(), batch, 0)?;
    let executable = partition.prepare_model(model, &shapes(&inputs))?;
    executable.write_inputs(&inputs)?;
    Ok(executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_and_images_have_the_batch_that_is_asked_for() {
        let images = shapes(&inputs("resnet50", 2, 1).unwrap());
        assert_eq!(images, [[2, 3, 224, 224]]);
        let sentences = shapes(&inputs("bert_base", 3, 1).unwrap());
        assert_eq!(sentences, vec![vec![3, 128]; 3]);
        assert!(inputs("resnet51", 1, 1).is_err());
    }

    #[test]
    fn every_model_of_the_zoo_has_inputs() {
        for name in weft_zoo::names() {
            let inputs = inputs(name, 1, 1);
            assert!(inputs.is_ok_and(|inputs| !inputs.is_empty()), "{name}");
        }
    }

    #[test]
    fn another_seed_gives_other_inputs() {
        let drawn = |seed| inputs("tiny_resnet", 1, seed).unwrap();
        assert_eq!(drawn(5), drawn(5));
        assert_ne!(drawn(5), drawn(6));
    }
}
