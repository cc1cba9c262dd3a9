//! A model on the CPU device: its graph, and its weights as the kernels want them.

use weft_device::{DeviceError, LoadedModel};
use weft_ir::{Graph, OptimizedGraph};

use crate::weights::WeightStore;

/// A loaded model. The graph's own weights stay views of the model file.
pub(crate) struct CpuModel {
    pub(crate) name: String,
    pub(crate) graph: Graph,
    pub(crate) weights: WeightStore,
}

impl CpuModel {
    /// The concrete model, where it is one of this device.
    pub(crate) fn of(model: &dyn LoadedModel) -> Result<&Self, DeviceError> {
        let known = model.as_any().downcast_ref();
        known.ok_or_else(|| DeviceError::ForeignModel { model: model.name().to_string() })
    }

    /// Its graph at exact input shapes.
    pub(crate) fn specialise(&self, shapes: &[Vec<usize>]) -> Result<OptimizedGraph, DeviceError> {
        self.graph.specialise(shapes).map_err(|source| DeviceError::Model {
            model: self.name.clone(),
            source: Box::new(source),
        })
    }
}

impl LoadedModel for CpuModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
