//! Identity: the input as it is, whatever its kind.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

/// The input itself: a tensor, a sequence or an optional.
#[derive(Clone, Debug)]
pub struct Identity;

pub(super) fn build(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Identity))
}

impl Operator for Identity {
    fn name(&self) -> &'static str {
        "Identity"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        Ok(vec![inputs.value(0).ok_or(OperatorError::MissingInput(0))?.clone()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![inputs.fact(0).cloned().unwrap_or_default()])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(self.clone()))
    }
}
