//! Gather: slices along one axis, in the order and arrangement of the indices.

use std::sync::Arc;

use super::index::normalise_index;
use crate::axis::normalise_axis;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::layout::selection::select;
use crate::value::Value;

/// The first input with one axis replaced by the axes of the second, which picks positions along it.
#[derive(Clone, Debug)]
pub struct Gather {
    /// The axis, from the end where negative.
    pub axis: i64,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Gather { axis: source.attributes.int_or("axis", 0)? }))
}

impl Operator for Gather {
    fn name(&self) -> &'static str {
        "Gather"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (x, indices) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let axis = normalise_axis(self.axis, x.rank())?;
        let picked: Vec<usize> = indices
            .to_i64s()?
            .iter()
            .map(|&index| normalise_index(index, x.shape()[axis]))
            .collect::<Result<_, _>>()?;
        let mut flat = x.shape().to_vec();
        flat[axis] = picked.len();
        let mut shape = x.shape().to_vec();
        shape.splice(axis..=axis, indices.shape().iter().copied());
        let position = |along, index| if along == axis { picked[index] } else { index };
        Ok(vec![select(x, flat, position)?.reshaped(shape)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match (inputs.dimensions(0), inputs.dimensions(1)) {
            (Some(x), Some(indices)) => {
                let axis = normalise_axis(self.axis, x.len())?;
                let mut dimensions = x.to_vec();
                dimensions.splice(axis..=axis, indices.iter().copied());
                Some(dimensions)
            }
            _ => None,
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
