//! A model on the CPU device: its graph, and its weights as the kernels want them.

use weft_device::LoadedModel;
use weft_ir::Graph;

use crate::weights::WeightStore;

/// A loaded model. The graph's own weights stay views of the model file.
pub(crate) struct CpuModel {
    pub(crate) name: String,
    pub(crate) graph: Graph,
    pub(crate) weights: WeightStore,
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
