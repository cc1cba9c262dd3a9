//! A model on a GPU: its graph, and its weights as the kernels want them.

use std::sync::Arc;

use weft_device::{DeviceError, LoadedModel};
use weft_ir::{Graph, OptimizedGraph};

use crate::Precision;
use crate::gpu::Gpu;
use crate::known_plans::KnownPlans;
use crate::weights::WeightStore;

/// A loaded model. Its weights come onto the GPU when it is first prepared, once for all partitions.
pub struct CudaModel {
    pub(crate) name: String,
    pub(crate) graph: Graph,
    pub(crate) precision: Precision,
    pub(crate) weights: WeightStore,
    pub(crate) plans: KnownPlans,
    pub(crate) gpu: Arc<Gpu>,
}

impl CudaModel {
    /// What it runs at.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// A model of a GPU's.
    pub(crate) fn of<'a>(
        model: &'a dyn LoadedModel,
        gpu: &Arc<Gpu>,
    ) -> Result<&'a Self, DeviceError> {
        let own = model.as_any().downcast_ref::<Self>().filter(|own| Arc::ptr_eq(&own.gpu, gpu));
        own.ok_or_else(|| DeviceError::ForeignModel { model: model.name().to_string() })
    }

    /// Its graph for inputs of exactly these shapes.
    pub(crate) fn specialised(&self, shapes: &[Vec<usize>]) -> Result<OptimizedGraph, DeviceError> {
        self.graph.specialise(shapes).map_err(|source| DeviceError::Model {
            model: self.name.clone(),
            source: Box::new(source),
        })
    }

    /// Frees weights that no plan uses: forms of candidates that were not chosen, and where something failed on the way, all that was
    /// made for it.
    pub(crate) fn tidy(&self, has_failed: bool) {
        if has_failed {
            self.plans.forget();
        }
        self.weights.release_unused();
    }

    /// The size of its weights on the GPU.
    pub fn weight_bytes(&self) -> usize {
        self.weights.size_bytes()
    }
}

impl LoadedModel for CudaModel {
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
