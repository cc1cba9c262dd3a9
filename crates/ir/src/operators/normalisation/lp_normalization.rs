//! LpNormalization: the elements along an axis divided by their norm.

use std::sync::Arc;

use super::channels::permuted_axis;
use crate::axis::{around_axis, normalise_axis};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

#[derive(Clone, Debug)]
struct LpNormalization {
    axis: i64,
    /// The sum of squares under a root, instead of the sum of absolute values.
    euclidean: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let euclidean = match source.attributes.int_or("p", 2)? {
        1 => false,
        2 => true,
        p => {
            let problem = format!("{p} is neither 1 nor 2");
            return Err(OperatorError::Attribute { name: "p".into(), problem });
        }
    };
    Ok(Arc::new(LpNormalization { axis: source.attributes.int_or("axis", -1)?, euclidean }))
}

impl Operator for LpNormalization {
    fn name(&self) -> &'static str {
        "LpNormalization"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let axis = normalise_axis(self.axis, x.rank())?;
        let (_, along, after) = around_axis(x.shape(), axis);
        let mut elements = x.to_f64s()?;
        for slab in elements.chunks_mut((along * after).max(1)) {
            for place in 0..after {
                let line = (0..along).map(|index| slab[index * after + place]);
                let norm = match self.euclidean {
                    true => line.map(|x| x * x).sum::<f64>().sqrt(),
                    false => line.map(f64::abs).sum::<f64>(),
                };
                // Zeros have no direction to keep and stay zeros.
                let inverse = if norm == 0.0 { 0.0 } else { 1.0 / norm };
                (0..along).for_each(|index| slab[index * after + place] *= inverse);
            }
        }
        Ok(vec![Tensor::from_f64s(x.shape().to_vec(), x.data_type(), elements)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let axis = normalise_axis(self.axis, permutation.len()).ok()?;
        let axis = permuted_axis(permutation, axis)? as i64;
        Some(Arc::new(LpNormalization { axis, ..self.clone() }))
    }
}
