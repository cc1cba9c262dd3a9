//! ArrayFeatureExtractor: chosen columns of rows of features.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::layout::selection::select;
use crate::value::Value;

/// The positions of the last axis that the second input names.
#[derive(Clone, Debug)]
struct ArrayFeatureExtractor;

pub(super) fn build(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(ArrayFeatureExtractor))
}

impl Operator for ArrayFeatureExtractor {
    fn name(&self) -> &'static str {
        "ArrayFeatureExtractor"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let columns = inputs.tensor(1)?.to_i64s()?;
        let columns: Option<Vec<usize>> =
            columns.iter().map(|&column| usize::try_from(column).ok()).collect();
        let columns = columns.ok_or_else(|| OperatorError::Invalid("a negative column".into()))?;
        // A single row still comes out as a matrix.
        let x = if x.rank() == 1 { x.reshaped(vec![1, x.len()])? } else { x.clone() };
        let mut shape = x.shape().to_vec();
        *shape.last_mut().ok_or(OperatorError::Axis { axis: -1, rank: 0 })? = columns.len();
        let last = x.rank() - 1;
        let position = |axis, index| if axis == last { columns[index] } else { index };
        Ok(vec![select(&x, shape, position)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let count = inputs.shape(1).and_then(|shape| crate::tensor::element_count(&shape));
        let dimensions = match inputs.dimensions(0) {
            Some([_]) => Some(vec![Some(1), count]),
            Some([leading @ .., _]) => Some([leading, &[count]].concat()),
            _ => None,
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
