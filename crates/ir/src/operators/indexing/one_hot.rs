//! OneHot: each index becomes a row that is "on" in one place.

use std::sync::Arc;

use crate::axis::{around_axis, normalise_axis};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// The indices with a new axis of the given depth, on where the index says and off elsewhere.
#[derive(Clone, Debug)]
struct OneHot {
    axis: i64,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(OneHot { axis: source.attributes.int_or("axis", -1)? }))
}

/// Numbers of any type as integers, fractions cut off.
fn integers(tensor: &Tensor) -> Result<Vec<i64>, OperatorError> {
    match tensor.data_type().is_integer() {
        true => Ok(tensor.to_i64s()?.into_owned()),
        false => Ok(tensor.to_f64s()?.into_iter().map(|number| number as i64).collect()),
    }
}

fn depth(tensor: &Tensor) -> Result<usize, OperatorError> {
    let depth = integers(tensor)?;
    let only = <[i64; 1]>::try_from(depth).ok().and_then(|[depth]| usize::try_from(depth).ok());
    only.ok_or_else(|| OperatorError::Invalid("the depth must be one non-negative integer".into()))
}

impl Operator for OneHot {
    fn name(&self) -> &'static str {
        "OneHot"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (indices, depth, values) =
            (inputs.tensor(0)?, depth(inputs.tensor(1)?)?, inputs.tensor(2)?);
        if values.len() != 2 {
            return Err(OperatorError::ElementCount { shape: vec![2], given: values.len() });
        }
        let axis = normalise_axis(self.axis, indices.rank() + 1)?;
        let mut shape = indices.shape().to_vec();
        shape.insert(axis, depth);
        let count = checked_count(&shape, values.data_type())?;
        // Element 0 of the values is "off", element 1 is "on".
        let mut switches = vec![0; count];
        if count > 0 {
            let (_, _, after) = around_axis(&shape, axis);
            for (place, index) in integers(indices)?.into_iter().enumerate() {
                let shifted = if index < 0 { index.saturating_add(depth as i64) } else { index };
                if let Some(hot) = usize::try_from(shifted).ok().filter(|&hot| hot < depth) {
                    switches[(place / after * depth + hot) * after + place % after] = 1;
                }
            }
        }
        Ok(vec![values.gathered(shape, &switches)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match inputs.dimensions(0) {
            None => None,
            Some(from) => {
                let mut dimensions = from.to_vec();
                let depth = inputs.constant(1).map(depth).transpose()?;
                dimensions.insert(normalise_axis(self.axis, from.len() + 1)?, depth);
                Some(dimensions)
            }
        };
        Ok(vec![Fact::partial(inputs.data_type(2), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
