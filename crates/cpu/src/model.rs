//! A model on the CPU device: its graph, and its weights as the kernels want them.

use weft_device::{DeviceError, LoadedModel};
use weft_ir::{Graph, OptimizedGraph};

use crate::plan::{LEAST_ENTRIES, is_part};
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

    /// The graph for one of so many equal parts of the batch, where it computes in parts what `whole` does at once, which is the
    /// graph for these shapes.
    pub(crate) fn part(
        &self,
        whole: &OptimizedGraph,
        shapes: &[Vec<usize>],
        count: usize,
    ) -> Option<OptimizedGraph> {
        if !can_divide(shapes, count) {
            return None;
        }
        let mut own = shapes.to_vec();
        own.iter_mut().for_each(|shape| shape[0] /= count);
        let part = self.graph.specialise(&own).ok()?;
        is_part(&part, whole, count).then_some(part)
    }
}

/// Whether inputs of these shapes have a batch of so many equal parts, each of which has enough entries.
fn can_divide(shapes: &[Vec<usize>], count: usize) -> bool {
    let batch = shapes.first().and_then(|shape| shape.first());
    let is_enough = |batch: &usize| batch.is_multiple_of(count) && batch / count >= LEAST_ENTRIES;
    count > 0 && batch.is_some_and(is_enough) && shapes.iter().all(|shape| shape.first() == batch)
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
