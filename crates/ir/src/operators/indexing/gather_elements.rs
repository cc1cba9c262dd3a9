//! GatherElements: single elements picked along one axis.

use std::sync::Arc;

use super::index::element_offsets;
use crate::axis::normalise_axis;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

/// For each index the element at its own place, but at the index along one axis.
#[derive(Clone, Debug)]
struct GatherElements {
    axis: i64,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(GatherElements { axis: source.attributes.int_or("axis", 0)? }))
}

impl Operator for GatherElements {
    fn name(&self) -> &'static str {
        "GatherElements"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (x, indices) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let axis = normalise_axis(self.axis, x.rank())?;
        let offsets = element_offsets(x.shape(), indices, axis)?;
        Ok(vec![x.gathered(indices.shape().to_vec(), &offsets)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(1).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
