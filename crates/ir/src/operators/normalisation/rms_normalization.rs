//! RMSNormalization: the trailing axes divided by their root mean square, then scaled.

use std::sync::Arc;

use super::trailing::TrailingParameter;
use crate::axis::normalise_axis;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// `x / sqrt(mean(x * x) + epsilon) * scale`, the mean taken over `axis` and all axes after it.
#[derive(Clone, Debug)]
pub struct RmsNormalization {
    /// The first axis that is normalised over; negative ones count from the end.
    pub axis: i64,
    /// Added to the mean square.
    pub epsilon: f32,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(RmsNormalization {
        axis: source.attributes.int_or("axis", -1)?,
        epsilon: source.attributes.float_or("epsilon", 1e-5)?,
    }))
}

impl Operator for RmsNormalization {
    fn name(&self) -> &'static str {
        "RMSNormalization"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (x, scale) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let axis = normalise_axis(self.axis, x.rank())?;
        let parameter = TrailingParameter::new(scale, x.shape(), axis)?;
        let width: usize = x.shape()[axis..].iter().product();
        let mut elements = x.to_f64s()?;
        for (row, elements) in elements.chunks_mut(width.max(1)).enumerate() {
            let mean_square = elements.iter().map(|x| x * x).sum::<f64>() / width as f64;
            let inverse = 1.0 / (mean_square + f64::from(self.epsilon)).sqrt();
            for (column, x) in elements.iter_mut().enumerate() {
                *x *= inverse * parameter.at(row * width + column);
            }
        }
        Ok(vec![Tensor::from_f64s(x.shape().to_vec(), scale.data_type(), elements)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(inputs.data_type(1), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        4 * outputs.first().and_then(Fact::element_count).unwrap_or(0) as u64
    }
}
