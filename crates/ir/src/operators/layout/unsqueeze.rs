//! Unsqueeze: inserts dimensions of size 1.

use std::sync::Arc;

use crate::axis::normalise_axes;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

/// The input with dimensions of size 1 inserted, so that they stand at the named axes of the output.
#[derive(Clone, Debug)]
pub struct Unsqueeze {
    /// The axes, where the operator set has them as an attribute; the second input otherwise.
    pub axes: Option<Vec<i64>>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let axes = match source.opset {
        ..13 => {
            let axes = source.attributes.ints("axes")?;
            Some(axes.map(<[i64]>::to_vec).ok_or_else(|| OperatorError::Attribute {
                name: "axes".into(),
                problem: "is missing".into(),
            })?)
        }
        _ => None,
    };
    Ok(Arc::new(Unsqueeze { axes }))
}

fn unsqueezed<T: Copy>(from: &[T], axes: &[i64], one: T) -> Result<Vec<T>, OperatorError> {
    let axes = normalise_axes(axes, from.len() + axes.len())?;
    let mut to = from.to_vec();
    // Sorted axes stand at their final places when inserted in order.
    axes.iter().for_each(|&axis| to.insert(axis, one));
    Ok(to)
}

impl Operator for Unsqueeze {
    fn name(&self) -> &'static str {
        "Unsqueeze"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let shape = match &self.axes {
            Some(axes) => unsqueezed(x.shape(), axes, 1)?,
            None => unsqueezed(x.shape(), &inputs.tensor(1)?.to_i64s()?, 1)?,
        };
        Ok(vec![x.reshaped(shape)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let given = inputs.constant_i64s(1);
        let dimensions = match (inputs.dimensions(0), self.axes.as_deref().or(given.as_deref())) {
            (Some(from), Some(axes)) => Some(unsqueezed(from, axes, Some(1))?),
            _ => None,
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
