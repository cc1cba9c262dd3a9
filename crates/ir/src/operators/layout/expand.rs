//! Expand: broadcasts a tensor to a shape.

use std::sync::Arc;

use crate::broadcast::{broadcast_dimensions, broadcast_indices, broadcast_shapes};
use crate::error::OperatorError;
use crate::fact::{Fact, unknown_dimensions};
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::checked_count;
use crate::value::Value;

/// The first input in the shape that its own and the requested one broadcast to.
#[derive(Clone, Debug)]
pub struct Expand;

pub(super) fn build(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Expand))
}

/// The sizes as dimensions; negative ones are refused.
pub(super) fn sizes(given: &[i64]) -> Result<Vec<usize>, OperatorError> {
    let sizes: Result<Vec<usize>, _> = given.iter().map(|&size| usize::try_from(size)).collect();
    sizes.map_err(|_| OperatorError::Invalid(format!("{given:?} holds a negative size")))
}

impl Operator for Expand {
    fn name(&self) -> &'static str {
        "Expand"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let requested = sizes(&inputs.tensor(1)?.to_i64s()?)?;
        let shape = broadcast_shapes(&[x.shape(), &requested])?;
        checked_count(&shape, x.data_type())?;
        let indices = broadcast_indices(x.shape(), &shape);
        Ok(vec![x.gathered(shape, &indices)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match (inputs.dimensions(0), inputs.constant_i64s(1)) {
            (Some(from), Some(requested)) => {
                let requested: Vec<Option<usize>> =
                    sizes(&requested)?.into_iter().map(Some).collect();
                Some(broadcast_dimensions(from, &requested)?)
            }
            (Some(from), None) => match inputs.dimensions(1) {
                Some(&[Some(count)]) => unknown_dimensions(count.max(from.len())),
                _ => None,
            },
            (None, _) => None,
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
