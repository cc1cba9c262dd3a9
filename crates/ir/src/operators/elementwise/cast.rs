//! Cast and CastLike: elements converted to another type.

use std::sync::Arc;

use super::convert::convert;
use super::inference::shaped_like_first;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::narrow::{RoundMode, Rounding};
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

/// Every element converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    /// The type to convert to; where absent, the second input's.
    pub to: Option<DataType>,
    /// How numbers become narrow floats.
    pub rounding: Rounding,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let to = match source.operator {
        "CastLike" => None,
        _ => Some(data_type_attribute(source, "to")?.ok_or_else(|| OperatorError::Attribute {
            name: "to".into(),
            problem: "is missing".into(),
        })?),
    };
    let mode = source.attributes.string_or("round_mode", "up")?;
    let mode = RoundMode::from_onnx(mode).ok_or_else(|| OperatorError::Attribute {
        name: "round_mode".into(),
        problem: format!("'{mode}' is neither up, down nor nearest"),
    })?;
    let saturate = source.attributes.flag_or("saturate", true)?;
    Ok(Arc::new(Cast { to, rounding: Rounding { saturate, mode } }))
}

/// An attribute that numbers an element type, where given.
pub(crate) fn data_type_attribute(
    source: &NodeSource<'_>,
    name: &str,
) -> Result<Option<DataType>, OperatorError> {
    let Some(code) = source.attributes.int(name)? else { return Ok(None) };
    match DataType::from_onnx(code) {
        Some(data_type) => Ok(Some(data_type)),
        None => Err(OperatorError::Attribute {
            name: name.to_string(),
            problem: format!("{code} numbers no element type"),
        }),
    }
}

impl Operator for Cast {
    fn name(&self) -> &'static str {
        if self.to.is_some() { "Cast" } else { "CastLike" }
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let to = match self.to {
            Some(to) => to,
            None => inputs.tensor(1)?.data_type(),
        };
        Ok(vec![convert(inputs.tensor(0)?, to, self.rounding)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![shaped_like_first(inputs, self.to.or(inputs.data_type(1)))])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(*self))
    }
}
