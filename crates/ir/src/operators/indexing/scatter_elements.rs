//! ScatterElements, formerly Scatter: updates fall on single elements picked along one axis.

use std::sync::Arc;

use super::index::element_offsets;
use super::scatter::{Combination, scatter};
use crate::axis::normalise_axis;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

/// Each update falls on the element at its own place, but at the index along one axis.
#[derive(Clone, Debug)]
struct ScatterElements {
    axis: i64,
    combination: Combination,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let axis = source.attributes.int_or("axis", 0)?;
    let combination = Combination::from_attributes(source.attributes)?;
    Ok(Arc::new(ScatterElements { axis, combination }))
}

impl Operator for ScatterElements {
    fn name(&self) -> &'static str {
        "ScatterElements"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (x, indices, updates) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        if indices.shape() != updates.shape() {
            let (left, right) = (indices.shape().to_vec(), updates.shape().to_vec());
            return Err(OperatorError::Shapes { left, right });
        }
        let axis = normalise_axis(self.axis, x.rank())?;
        let targets = element_offsets(x.shape(), indices, axis)?;
        Ok(vec![scatter(x, &targets, updates, self.combination)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }
}
