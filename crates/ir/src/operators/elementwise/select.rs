//! Where: picks each element from one of two tensors.

use std::sync::Arc;

use super::inference::broadcast;
use crate::broadcast::{broadcast_indices, broadcast_shapes};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// The second input's element where the first is true, else the third's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Where;

pub(super) fn build(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Where))
}

impl Operator for Where {
    fn name(&self) -> &'static str {
        "Where"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (condition, yes, no) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let shape = broadcast_shapes(&[condition.shape(), yes.shape(), no.shape()])?;
        checked_count(&shape, yes.data_type())?;
        let conditions = condition.elements::<bool>()?;
        let picks: Vec<usize> = broadcast_indices(condition.shape(), &shape)
            .into_iter()
            .zip(broadcast_indices(yes.shape(), &shape))
            .zip(broadcast_indices(no.shape(), &shape))
            .map(
                |((condition, yes_index), no_index)| {
                    if conditions[condition] { yes_index } else { yes.len() + no_index }
                },
            )
            .collect();
        Ok(vec![Tensor::chained(&[yes, no])?.gathered(shape, &picks)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![broadcast(inputs, 3, inputs.data_type(1).or(inputs.data_type(2)))?])
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(*self))
    }
}
