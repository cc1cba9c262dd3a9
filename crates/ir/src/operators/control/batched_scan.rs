//! Scan as operator set 8 has it: over a batch of sequences, which may differ in length.

use std::sync::Arc;

use super::body;
use super::scan::Scan;
use crate::error::OperatorError;
use crate::operator::{Inputs, NodeSource, Operator};
use crate::operators::layout::selection::{position_of, select_or_fill, zero};
use crate::operators::layout::stack;
use crate::tensor::Tensor;
use crate::value::Value;

/// Runs the scan on each sequence of the batch, its outputs padded with zeros to the longest.
#[derive(Clone, Debug)]
struct BatchedScan(Scan);

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(BatchedScan(Scan::new(source, "directions")?)))
}

/// One sample of every input.
fn sample(values: &[Option<Value>], index: usize) -> Result<Vec<Option<Value>>, OperatorError> {
    let part = |value: &Option<Value>| match value {
        None => Ok(None),
        Some(value) => {
            let tensor = value.clone().into_tensor()?;
            if tensor.rank() == 0 {
                return Err(OperatorError::Axis { axis: 0, rank: 0 });
            }
            Ok(Some(position_of(&tensor, 0, index)?.into()))
        }
    };
    values.iter().map(part).collect()
}

fn padded(tensor: &Tensor, length: usize) -> Result<Tensor, OperatorError> {
    let mut shape = tensor.shape().to_vec();
    let given = *shape.first().ok_or(OperatorError::Axis { axis: 0, rank: 0 })?;
    shape[0] = length;
    let position = |axis, index| Some(index).filter(|&index| axis != 0 || index < given);
    select_or_fill(tensor, shape, position, &zero(tensor.data_type()))
}

impl Operator for BatchedScan {
    fn name(&self) -> &'static str {
        "Scan"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (own, captured) = body::split_captured(self.0.body(), inputs)?;
        let (lengths, own) = own.split_first().ok_or(OperatorError::MissingInput(0))?;
        let scanned = own.last().and_then(Option::as_ref).and_then(Value::tensor);
        let Some(&[batch, longest, ..]) = scanned.map(Tensor::shape) else {
            return Err(OperatorError::Invalid("a batched scan without batched sequences".into()));
        };
        if batch > body::MAX_COLLECTED {
            return Err(OperatorError::Invalid(format!("a scan over a batch of {batch}")));
        }
        let lengths = match lengths {
            None => None,
            Some(lengths) => Some(lengths.clone().into_tensor()?.to_i64s()?.into_owned()),
        };
        let mut samples: Vec<Vec<Tensor>> = Vec::new();
        for index in 0..batch {
            let length = lengths.as_ref().map(|lengths| {
                let length = lengths.get(index).and_then(|&length| usize::try_from(length).ok());
                length.ok_or_else(|| OperatorError::Invalid(format!("no length of sample {index}")))
            });
            let results = self.0.run(&sample(own, index)?, captured, length.transpose()?)?;
            let tensors = results.into_iter().enumerate().map(|(output, result)| {
                let tensor = result.into_tensor()?;
                if output < self.0.states() { Ok(tensor) } else { padded(&tensor, longest) }
            });
            samples.push(tensors.collect::<Result<_, _>>()?);
        }
        let outputs = 0..self.0.body().outputs().len();
        let stacked = outputs.map(|output| {
            let column: Vec<&Tensor> =
                samples.iter().filter_map(|sample| sample.get(output)).collect();
            Ok(stack(&column, 0)?.into())
        });
        stacked.collect()
    }
}
