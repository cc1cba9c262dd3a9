//! StringConcat: strings joined element by element.

use std::sync::Arc;

use crate::broadcast::{broadcast_dimensions, broadcast_indices, broadcast_shapes};
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{MAX_TENSOR_BYTES, Tensor, checked_count};
use crate::value::Value;

/// Each string of the first input followed by the one of the second, broadcast.
#[derive(Clone, Debug)]
struct StringConcat;

pub(super) fn build(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(StringConcat))
}

impl Operator for StringConcat {
    fn name(&self) -> &'static str {
        "StringConcat"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (left, right) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let shape = broadcast_shapes(&[left.shape(), right.shape()])?;
        checked_count(&shape, DataType::String)?;
        let from = |tensor: &Tensor| broadcast_indices(tensor.shape(), &shape);
        let pairs = from(left).into_iter().zip(from(right));
        let (left, right) = (left.elements::<String>()?, right.elements::<String>()?);
        let mut joined = Vec::with_capacity(pairs.len());
        let mut bytes = 0usize;
        for (first, second) in pairs {
            let (first, second) = (&left[first], &right[second]);
            // Broadcasting repeats strings of any length, so the count alone does not bound them.
            bytes = bytes.saturating_add(first.len()).saturating_add(second.len());
            if bytes > MAX_TENSOR_BYTES {
                return Err(OperatorError::TooLarge { shape, data_type: DataType::String });
            }
            joined.push([first.as_str(), second].concat());
        }
        Ok(vec![Tensor::from_vec(shape, joined)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match (inputs.dimensions(0), inputs.dimensions(1)) {
            (Some(left), Some(right)) => Some(broadcast_dimensions(left, right)?),
            _ => None,
        };
        Ok(vec![Fact::partial(Some(DataType::String), dimensions)])
    }
}
