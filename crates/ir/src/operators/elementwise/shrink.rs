//! Shrink: elements near zero become zero, the others move towards it.

use std::sync::Arc;

use super::convert::convert;
use super::inference::like_first;
use super::parametrised::map_floats;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::narrow::Rounding;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

/// `x + bias` below `-lambda`, `x - bias` above `lambda`, zero between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shrink {
    /// How near zero an element must be to become it.
    pub lambda: f32,
    /// How far the others move.
    pub bias: f32,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Shrink {
        lambda: source.attributes.float_or("lambd", 0.5)?,
        bias: source.attributes.float_or("bias", 0.0)?,
    }))
}

impl Shrink {
    fn apply(&self, x: f64) -> f64 {
        let (lambda, bias) = (f64::from(self.lambda), f64::from(self.bias));
        if x < -lambda {
            x + bias
        } else if x > lambda {
            x - bias
        } else {
            0.0
        }
    }
}

impl Operator for Shrink {
    fn name(&self) -> &'static str {
        "Shrink"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let shrink = |x: &_| map_floats(x, |x| self.apply(x.into()) as f32, |x| self.apply(x));
        let shrunk = if x.data_type().is_integer() {
            let exact = convert(x, DataType::F64, Rounding::default())?;
            convert(&shrink(&exact)?, x.data_type(), Rounding::default())?
        } else {
            shrink(x)?
        };
        Ok(vec![shrunk.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![like_first(inputs)])
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(*self))
    }
}
