//! Constant: a tensor written into the node.

use std::sync::Arc;

use crate::attribute::Attribute;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// A tensor that depends on nothing.
#[derive(Clone, Debug)]
struct Constant {
    tensor: Tensor,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let mut given = source.attributes.iter().filter(|(name, _)| name.starts_with("value"));
    let tensor = match (given.next(), given.next()) {
        (Some(("value", Attribute::Tensor(tensor))), None) => tensor.clone(),
        (Some(("value_int", Attribute::Int(element))), None) => Tensor::scalar(*element),
        (Some(("value_float", Attribute::Float(element))), None) => Tensor::scalar(*element),
        (Some(("value_string", Attribute::String(element))), None) => {
            Tensor::scalar(element.clone())
        }
        (Some(("value_ints", _)), None) => {
            Tensor::vector(source.attributes.ints("value_ints")?.unwrap_or_default().to_vec())
        }
        (Some(("value_floats", _)), None) => {
            Tensor::vector(source.attributes.floats("value_floats")?.unwrap_or_default().to_vec())
        }
        (Some(("value_strings", _)), None) => {
            Tensor::vector(source.attributes.strings("value_strings")?.unwrap_or_default().to_vec())
        }
        _ => {
            return Err(OperatorError::Attribute {
                name: "value".into(),
                problem: "must be given once, in a form that is supported".into(),
            });
        }
    };
    Ok(Arc::new(Constant { tensor }))
}

impl Operator for Constant {
    fn name(&self) -> &'static str {
        "Constant"
    }

    fn evaluate(&self, _inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        Ok(vec![self.tensor.clone().into()])
    }

    fn infer(&self, _inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![Fact::constant(self.tensor.clone())])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
