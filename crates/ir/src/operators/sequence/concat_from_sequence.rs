//! ConcatFromSequence: the tensors of a sequence, joined.

use std::sync::Arc;

use crate::axis::normalise_axis;
use crate::error::OperatorError;
use crate::operator::{Inputs, NodeSource, Operator};
use crate::operators::layout::{concat, stack};
use crate::tensor::Tensor;
use crate::value::Value;

/// Joins along an axis, or along a new one.
#[derive(Clone, Debug)]
struct ConcatFromSequence {
    axis: i64,
    is_new: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let axis = source.attributes.int("axis")?.ok_or_else(|| OperatorError::Attribute {
        name: "axis".into(),
        problem: "is missing".into(),
    })?;
    Ok(Arc::new(ConcatFromSequence { axis, is_new: source.attributes.flag_or("new_axis", false)? }))
}

impl Operator for ConcatFromSequence {
    fn name(&self) -> &'static str {
        "ConcatFromSequence"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let tensors: Vec<&Tensor> = inputs.sequence(0)?.1.iter().collect();
        let rank = tensors.first().map_or(0, |tensor| tensor.rank());
        let joined = match self.is_new {
            true => stack(&tensors, normalise_axis(self.axis, rank + 1)?)?,
            false => concat(&tensors, normalise_axis(self.axis, rank)?)?,
        };
        Ok(vec![joined.into()])
    }
}
