//! Flatten: a matrix, rows from the axes before the given one and columns from the rest.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::element_count;
use crate::value::Value;

/// Two dimensions: the product of those before `axis`, and the product of the others.
#[derive(Clone, Debug)]
pub struct Flatten {
    /// Where the columns begin; may equal the rank, and counts from the end where negative.
    pub axis: i64,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Flatten { axis: source.attributes.int_or("axis", 1)? }))
}

impl Flatten {
    /// The output's dimensions, as far as the input's tell them.
    pub fn target(&self, from: &[Option<usize>]) -> Result<Vec<Option<usize>>, OperatorError> {
        let rank = from.len();
        let shifted =
            if self.axis < 0 { self.axis.checked_add(rank as i64) } else { Some(self.axis) };
        let axis = shifted
            .and_then(|axis| usize::try_from(axis).ok())
            .filter(|&axis| axis <= rank)
            .ok_or(OperatorError::Axis { axis: self.axis, rank })?;
        let (rows, columns) = from.split_at(axis);
        let product = |dimensions: &[Option<usize>]| {
            element_count(&dimensions.iter().copied().collect::<Option<Vec<_>>>()?)
        };
        Ok(vec![product(rows), product(columns)])
    }
}

impl Operator for Flatten {
    fn name(&self) -> &'static str {
        "Flatten"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let from: Vec<Option<usize>> = x.shape().iter().copied().map(Some).collect();
        let shape = self.target(&from)?.into_iter().collect::<Option<Vec<_>>>();
        let shape = shape.ok_or_else(|| OperatorError::TooLarge {
            shape: x.shape().to_vec(),
            data_type: x.data_type(),
        })?;
        Ok(vec![x.reshaped(shape)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match inputs.dimensions(0) {
            None => vec![None, None],
            Some(from) => self.target(from)?,
        };
        Ok(vec![Fact::partial(inputs.data_type(0), Some(dimensions))])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
