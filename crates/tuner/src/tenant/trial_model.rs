//! The model whose requests are trials.

use std::any::Any;
use std::sync::Arc;

use weft_device::{DeviceError, LoadedModel};
use weft_ir::{Attributes, DataType, Graph, GraphBuilder, Tensor, Value};

use super::trials::Trials;

/// What people see it as.
const NAME: &str = "tuning trials";

/// A model that takes the number of a trial, runs that on a part of its partition of one size, and gives the number back.
pub struct TrialModel {
    graph: Graph,
    size: usize,
    pub(super) trials: Arc<Trials>,
}

impl TrialModel {
    /// A model for trials on exactly so many cores or SMs.
    pub fn new(size: usize) -> Result<Self, DeviceError> {
        let mut builder = GraphBuilder::new(NAME, 17);
        let number = builder.input("number", DataType::I64, &[1]);
        let same = builder.node("Identity", &[number], Attributes::new());
        builder.output("same", same);
        let graph = builder.finish().map_err(|error| DeviceError::Failed(error.to_string()))?;
        Ok(Self { graph, size, trials: Arc::default() })
    }

    /// How many cores or SMs its trials are for.
    pub fn size(&self) -> usize {
        self.size
    }

    /// What a request for a trial holds.
    pub(super) fn inputs(number: i64) -> Vec<Value> {
        vec![Tensor::vector(vec![number]).into()]
    }

    /// The number in a request.
    pub(super) fn number(inputs: &[Value]) -> Result<i64, DeviceError> {
        let number = inputs.first().and_then(Value::tensor);
        let number = number.and_then(|tensor| tensor.only::<i64>().ok());
        number.ok_or_else(|| DeviceError::Input {
            name: "number".into(),
            problem: "it is no number of a trial".into(),
        })
    }
}

impl LoadedModel for TrialModel {
    fn name(&self) -> &str {
        NAME
    }

    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
