//! Compress: the positions of an axis that a condition picks.

use std::sync::Arc;

use crate::axis::normalise_axis;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::layout::selection::select;
use crate::value::Value;

/// The positions of one axis, or of the flattened input, where the condition holds.
#[derive(Clone, Debug)]
struct Compress {
    axis: Option<i64>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Compress { axis: source.attributes.int("axis")? }))
}

impl Operator for Compress {
    fn name(&self) -> &'static str {
        "Compress"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let condition = inputs.tensor(1)?.elements::<bool>()?;
        let (x, axis) = match self.axis {
            Some(axis) => (x.clone(), normalise_axis(axis, x.rank())?),
            None => (x.reshaped(vec![x.len()])?, 0),
        };
        let picked: Vec<usize> = condition
            .iter()
            .enumerate()
            .filter_map(|(position, &holds)| holds.then_some(position))
            .collect();
        let mut shape = x.shape().to_vec();
        shape[axis] = picked.len();
        let position = |along, index| if along == axis { picked[index] } else { index };
        Ok(vec![select(&x, shape, position)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match (self.axis, inputs.dimensions(0)) {
            (None, _) => Some(vec![None]),
            (Some(_), None) => None,
            (Some(axis), Some(from)) => {
                let mut dimensions = from.to_vec();
                dimensions[normalise_axis(axis, from.len())?] = None;
                Some(dimensions)
            }
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
