//! GatherND: slices picked by index tuples.

use std::sync::Arc;

use super::index::TupleSlices;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::checked_count;
use crate::value::Value;

/// The slices of the first input that the tuples along the last axis of the second name.
#[derive(Clone, Debug)]
struct GatherNd {
    batches: usize,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let batches = source.attributes.int_or("batch_dims", 0)?;
    let batches = usize::try_from(batches).map_err(|_| OperatorError::Attribute {
        name: "batch_dims".into(),
        problem: format!("{batches} is negative"),
    })?;
    Ok(Arc::new(GatherNd { batches }))
}

impl Operator for GatherNd {
    fn name(&self) -> &'static str {
        "GatherND"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let slices = TupleSlices::new(x.shape(), inputs.tensor(1)?, self.batches)?;
        checked_count(&slices.shape, x.data_type())?;
        let elements = slices.elements();
        Ok(vec![x.gathered(slices.shape, &elements)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match (inputs.dimensions(0), inputs.dimensions(1)) {
            (Some(x), Some([leading @ .., Some(width)])) => {
                let named = self.batches.saturating_add(*width);
                let rest = x.get(named..).ok_or_else(|| {
                    let problem = format!("tuples of {width} indices into rank {}", x.len());
                    OperatorError::Invalid(problem)
                })?;
                Some([leading, rest].concat())
            }
            _ => None,
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
