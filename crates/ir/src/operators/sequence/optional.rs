//! Optional, OptionalGetElement and OptionalHasElement: values that may be absent.

use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// What to do to an optional.
#[derive(Clone, Copy, Debug)]
enum OptionalAccess {
    /// Wraps the input, or nothing.
    Make,
    Get,
    Has,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(match source.operator {
        "Optional" => OptionalAccess::Make,
        "OptionalGetElement" => OptionalAccess::Get,
        "OptionalHasElement" => OptionalAccess::Has,
        other => return Err(OperatorError::Unsupported(other.into())),
    }))
}

impl Operator for OptionalAccess {
    fn name(&self) -> &'static str {
        match self {
            Self::Make => "Optional",
            Self::Get => "OptionalGetElement",
            Self::Has => "OptionalHasElement",
        }
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let given = inputs.value(0);
        let result = match (self, given) {
            (Self::Make, given) => Value::Optional(given.cloned().map(Box::new)),
            (Self::Has, None | Some(Value::Optional(None))) => Tensor::scalar(false).into(),
            (Self::Has, Some(_)) => Tensor::scalar(true).into(),
            (Self::Get, Some(Value::Optional(Some(inner)))) => (**inner).clone(),
            (Self::Get, Some(Value::Optional(None))) => {
                return Err(OperatorError::Invalid("the optional is empty".into()));
            }
            // A value that is no optional counts as one that is there.
            (Self::Get, Some(value)) => value.clone(),
            (Self::Get, None) => return Err(OperatorError::MissingInput(0)),
        };
        Ok(vec![result])
    }

    fn infer(&self, _inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![match self {
            Self::Has => Fact::new(DataType::Bool, &[]),
            _ => Fact::unknown(),
        }])
    }
}
