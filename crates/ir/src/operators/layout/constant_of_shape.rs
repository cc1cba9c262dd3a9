//! ConstantOfShape: one value in every place of a shape.

use std::sync::Arc;

use super::expand::sizes;
use crate::error::OperatorError;
use crate::fact::{Fact, unknown_dimensions};
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// A tensor of the shape that the input gives, filled with one value.
#[derive(Clone, Debug)]
struct ConstantOfShape {
    value: Tensor,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let value = match source.attributes.tensor("value")? {
        None => Tensor::scalar(0f32),
        Some(value) => value.reshaped(Vec::new())?,
    };
    Ok(Arc::new(ConstantOfShape { value }))
}

impl Operator for ConstantOfShape {
    fn name(&self) -> &'static str {
        "ConstantOfShape"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let shape = sizes(&inputs.tensor(0)?.to_i64s()?)?;
        let count = checked_count(&shape, self.value.data_type())?;
        Ok(vec![self.value.gathered(shape, &vec![0; count])?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match (inputs.constant_i64s(0), inputs.dimensions(0)) {
            (Some(given), _) => Some(sizes(&given)?.into_iter().map(Some).collect()),
            (None, Some(&[Some(rank)])) => unknown_dimensions(rank),
            _ => None,
        };
        Ok(vec![Fact::partial(Some(self.value.data_type()), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
