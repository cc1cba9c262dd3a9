//! LRN: each element divided by a power of the sum of squares of its neighbours among the channels.

use std::sync::Arc;

use super::channels::permuted_axis;
use crate::axis::around_axis;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// `x / (bias + alpha / size * sum(x * x)) ^ beta`, the sum over `size` channels around the element's.
#[derive(Clone, Debug)]
struct LocalResponseNormalization {
    alpha: f32,
    beta: f32,
    bias: f32,
    size: usize,
    channel_axis: usize,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let size = attributes.int_or("size", 0)?;
    let size = usize::try_from(size).ok().filter(|&size| size > 0).ok_or_else(|| {
        OperatorError::Attribute { name: "size".into(), problem: format!("{size} channels") }
    })?;
    Ok(Arc::new(LocalResponseNormalization {
        alpha: attributes.float_or("alpha", 1e-4)?,
        beta: attributes.float_or("beta", 0.75)?,
        bias: attributes.float_or("bias", 1.0)?,
        size,
        channel_axis: 1,
    }))
}

impl Operator for LocalResponseNormalization {
    fn name(&self) -> &'static str {
        "LRN"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        if self.channel_axis >= x.rank() {
            return Err(OperatorError::Axis { axis: self.channel_axis as i64, rank: x.rank() });
        }
        let (_, channels, after) = around_axis(x.shape(), self.channel_axis);
        let elements = x.to_f64s()?;
        let mut y = Vec::with_capacity(elements.len());
        for image in elements.chunks((channels * after).max(1)) {
            for channel in 0..channels {
                let first = channel.saturating_sub((self.size - 1) / 2);
                let end = channel.saturating_add(self.size / 2 + 1).min(channels);
                for place in 0..after {
                    let squares = (first..end).map(|near| image[near * after + place].powi(2));
                    let sum = squares.sum::<f64>() * f64::from(self.alpha) / self.size as f64;
                    let divisor = (f64::from(self.bias) + sum).powf(self.beta.into());
                    y.push(image[channel * after + place] / divisor);
                }
            }
        }
        Ok(vec![Tensor::from_f64s(x.shape().to_vec(), x.data_type(), y)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        let count = outputs.first().and_then(Fact::element_count).unwrap_or(0);
        (count as u64).saturating_mul(2).saturating_mul(self.size as u64)
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let channel_axis = permuted_axis(permutation, self.channel_axis)?;
        Some(Arc::new(LocalResponseNormalization { channel_axis, ..self.clone() }))
    }
}
