//! LayerNormalization: the trailing axes brought to mean 0 and variance 1, then scaled and shifted.

use std::sync::Arc;

use super::statistics::mean_and_inverse;
use super::trailing::{TrailingParameter, reduced_dimensions, reduced_shape};
use crate::axis::normalise_axis;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// `(x - mean) / sqrt(variance + epsilon) * scale + bias`, the statistics taken over `axis` and all axes after it.
#[derive(Clone, Debug)]
pub struct LayerNormalization {
    /// The first axis that is normalised over; negative ones count from the end.
    pub axis: i64,
    /// Added to the variance.
    pub epsilon: f32,
    /// The type of the outputs mean and inverse standard deviation.
    pub stash_type: DataType,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let stash = attributes.int_or("stash_type", 1)?;
    let stash_type = DataType::from_onnx(stash).ok_or_else(|| OperatorError::Attribute {
        name: "stash_type".into(),
        problem: format!("{stash} is no type"),
    })?;
    Ok(Arc::new(LayerNormalization {
        axis: attributes.int_or("axis", -1)?,
        epsilon: attributes.float_or("epsilon", 1e-5)?,
        stash_type,
    }))
}

impl Operator for LayerNormalization {
    fn name(&self) -> &'static str {
        "LayerNormalization"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let axis = normalise_axis(self.axis, x.rank())?;
        let scale = TrailingParameter::new(inputs.tensor(1)?, x.shape(), axis)?;
        let bias = match inputs.optional_tensor(2)? {
            None => None,
            Some(bias) => Some(TrailingParameter::new(bias, x.shape(), axis)?),
        };
        let width: usize = x.shape()[axis..].iter().product();
        let mut elements = x.to_f64s()?;
        let (mut means, mut inverses) = (Vec::new(), Vec::new());
        for (row, elements) in elements.chunks_mut(width.max(1)).enumerate() {
            let (mean, inverse) = mean_and_inverse(|| elements.iter().copied(), self.epsilon);
            for (column, x) in elements.iter_mut().enumerate() {
                let index = row * width + column;
                let bias = bias.as_ref().map_or(0.0, |bias| bias.at(index));
                *x = (*x - mean) * inverse * scale.at(index) + bias;
            }
            means.push(mean);
            inverses.push(inverse);
        }
        let mut outputs: Vec<Value> =
            vec![Tensor::from_f64s(x.shape().to_vec(), x.data_type(), elements)?.into()];
        if inputs.output_count() > 1 {
            let shape = reduced_shape(x.shape(), axis);
            outputs.push(Tensor::from_f64s(shape.clone(), self.stash_type, means)?.into());
            outputs.push(Tensor::from_f64s(shape, self.stash_type, inverses)?.into());
            outputs.truncate(inputs.output_count());
        }
        Ok(outputs)
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let x = inputs.dimensions(0);
        let y = Fact::partial(inputs.data_type(0), x.map(<[_]>::to_vec));
        let reduced = match x {
            None => None,
            Some(x) => Some(reduced_dimensions(x, normalise_axis(self.axis, x.len())?)),
        };
        let statistic = Fact::partial(Some(self.stash_type), reduced);
        let all = [y, statistic.clone(), statistic];
        Ok(all.into_iter().take(inputs.output_count().max(1)).collect())
    }

    fn flops(&self, _inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        8 * outputs.first().and_then(Fact::element_count).unwrap_or(0) as u64
    }
}
