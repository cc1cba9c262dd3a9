//! Relu: negative elements become zero.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// `max(x, 0)`.
#[derive(Clone, Debug)]
pub struct Relu;

pub(super) fn build(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Relu))
}

impl Operator for Relu {
    fn name(&self) -> &'static str {
        "Relu"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let positive = x.to_f32s()?.iter().map(|&e| e.max(0.0)).collect();
        Ok(vec![Tensor::from_f32s(x.shape().to_vec(), x.data_type(), positive)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![
            inputs.fact(0).map_or_else(Fact::unknown, |x| Fact { constant: None, ..x.clone() }),
        ])
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(self.clone()))
    }
}
