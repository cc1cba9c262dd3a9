//! ScatterND: updates fall on slices picked by index tuples.

use std::sync::Arc;

use super::index::TupleSlices;
use super::scatter::{Combination, scatter};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::checked_count;
use crate::value::Value;

/// Each slice of the updates falls on the slice of the data that its index tuple names.
#[derive(Clone, Debug)]
struct ScatterNd {
    combination: Combination,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(ScatterNd { combination: Combination::from_attributes(source.attributes)? }))
}

impl Operator for ScatterNd {
    fn name(&self) -> &'static str {
        "ScatterND"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (x, updates) = (inputs.tensor(0)?, inputs.tensor(2)?);
        let slices = TupleSlices::new(x.shape(), inputs.tensor(1)?, 0)?;
        if slices.shape != updates.shape() {
            let (left, right) = (slices.shape, updates.shape().to_vec());
            return Err(OperatorError::Shapes { left, right });
        }
        checked_count(&slices.shape, x.data_type())?;
        Ok(vec![scatter(x, &slices.elements(), updates, self.combination)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }
}
