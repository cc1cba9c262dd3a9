//! SequenceMap: a body applied to each element of sequences.

use std::sync::Arc;

use super::body;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::graph::Graph;
use crate::operator::{Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// Applies the body to the elements at each place of the sequences; tensors among the inputs are the same each time.
#[derive(Clone, Debug)]
struct SequenceMap {
    body: Arc<Graph>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(SequenceMap { body: source.attributes.graph("body")? }))
}

impl SequenceMap {
    /// The element type of an output sequence that has no element to tell it.
    fn declared_type(&self, output: usize) -> DataType {
        let id = self.body.outputs()[output];
        self.body.value(id).declared.as_ref().map_or(DataType::F32, |declared| declared.data_type)
    }
}

impl Operator for SequenceMap {
    fn name(&self) -> &'static str {
        "SequenceMap"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (own, captured) = body::split_captured(&self.body, inputs)?;
        let length = inputs.sequence(0)?.1.len();
        let mut outputs: Vec<Vec<Tensor>> = vec![Vec::new(); self.body.outputs().len()];
        for place in 0..length {
            let argument = |(index, value): (usize, &Option<Value>)| match value {
                Some(Value::Sequence(_, tensors)) => match tensors.get(place) {
                    Some(tensor) if tensors.len() == length => Ok(Some(tensor.clone().into())),
                    _ => Err(OperatorError::Invalid(format!(
                        "input {index} has {} elements beside {length}",
                        tensors.len()
                    ))),
                },
                other => Ok(other.clone()),
            };
            let arguments = own.iter().enumerate().map(argument).collect::<Result<_, _>>()?;
            let results = body::evaluate(&self.body, arguments, captured)?;
            for (output, result) in outputs.iter_mut().zip(results) {
                output.push(result.into_tensor()?);
            }
        }
        let sequence = |(index, tensors): (usize, Vec<Tensor>)| {
            let first = tensors.first().map(Tensor::data_type);
            Value::Sequence(first.unwrap_or_else(|| self.declared_type(index)), tensors)
        };
        Ok(outputs.into_iter().enumerate().map(sequence).collect())
    }
}
