//! The fallback: a node evaluated as its operator defines itself, by one worker.

use std::sync::Arc;

use weft_ir::{GraphError, Inputs, Operator, OperatorError, Value};

use super::kernel::{Call, Kernel};
use crate::Worker;

/// A node without a kernel of its own.
pub(crate) struct ReferenceStep {
    node: String,
    operator: Arc<dyn Operator>,
    input_count: usize,
    output_count: usize,
}

impl ReferenceStep {
    pub(crate) fn new(node: &weft_ir::Node) -> Self {
        Self {
            node: node.name.clone(),
            operator: node.operator.clone(),
            input_count: node.inputs.len(),
            output_count: node.outputs.len(),
        }
    }

    fn evaluate(&self, call: &Call<'_>) -> Result<(), OperatorError> {
        let values: Vec<Option<Value>> =
            (0..self.input_count).map(|index| call.value(index)).collect::<Result<_, _>>()?;
        let results = self.operator.evaluate(&Inputs::new(&values, self.output_count))?;
        for (index, result) in results.into_iter().enumerate() {
            call.store(index, result)?;
        }
        Ok(())
    }
}

impl Kernel for ReferenceStep {
    fn name(&self) -> String {
        "reference".into()
    }

    fn run(&self, worker: &Worker<'_>, call: &Call<'_>) {
        if worker.index() == 0
            && let Err(source) = self.evaluate(call)
        {
            let operator = self.operator.name().to_string();
            call.fail(GraphError::Node { node: self.node.clone(), operator, source });
        }
        worker.barrier();
    }
}
