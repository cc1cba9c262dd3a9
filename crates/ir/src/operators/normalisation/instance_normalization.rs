//! InstanceNormalization: each channel of each image brought to mean 0 and variance 1, then scaled and shifted.

use std::sync::Arc;

use super::channels::{check_parameters, permuted_axis};
use super::statistics::mean_and_inverse;
use crate::axis::around_axis;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// `(x - mean) / sqrt(variance + epsilon) * scale + bias`, statistics per channel of each image.
#[derive(Clone, Debug)]
pub struct InstanceNormalization {
    /// Added to the variance.
    pub epsilon: f32,
    /// The axis of the channels; that of the images is always the first.
    pub channel_axis: usize,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let epsilon = source.attributes.float_or("epsilon", 1e-5)?;
    Ok(Arc::new(InstanceNormalization { epsilon, channel_axis: 1 }))
}

impl Operator for InstanceNormalization {
    fn name(&self) -> &'static str {
        "InstanceNormalization"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let shape = x.shape();
        let parameters = [inputs.tensor(1), inputs.tensor(2)];
        let channels = check_parameters(shape, self.channel_axis, &parameters)?;
        let [scale, bias] = parameters;
        let (scale, bias) = (scale?.to_f64s()?, bias?.to_f64s()?);
        let mut elements = x.to_f64s()?;
        let (before, _, after) = around_axis(shape, self.channel_axis);
        let before = before / shape[0].max(1);
        for image in elements.chunks_mut((before * channels * after).max(1)) {
            for channel in 0..channels {
                let places = || {
                    (0..before).flat_map(move |outer| {
                        let start = (outer * channels + channel) * after;
                        start..start + after
                    })
                };
                let (mean, inverse) =
                    mean_and_inverse(|| places().map(|place| image[place]), self.epsilon);
                for place in places() {
                    image[place] = (image[place] - mean) * inverse * scale[channel] + bias[channel];
                }
            }
        }
        Ok(vec![Tensor::from_f64s(shape.to_vec(), x.data_type(), elements)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        8 * outputs.first().and_then(Fact::element_count).unwrap_or(0) as u64
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let channel_axis = permuted_axis(permutation, self.channel_axis)?;
        (permutation.first() == Some(&0)).then(|| {
            Arc::new(InstanceNormalization { channel_axis, ..self.clone() }) as Arc<dyn Operator>
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::standard_operator;
    use crate::operators::layout::transpose;

    #[test]
    fn permuted_channels_normalise_the_same() {
        let elements = (0..48).map(|i| (i * 7 % 13) as f64).collect();
        let x = Tensor::from_vec(vec![2, 3, 4, 2], elements).unwrap();
        let turned = transpose(&x, &[0, 2, 3, 1]).unwrap();
        let parameter = Tensor::vector(vec![1f64, 2.0, 3.0]);
        let attributes = Attributes::new().with("size", 3).with("axis", 1);
        for name in ["InstanceNormalization", "BatchNormalization", "LRN", "LpNormalization"] {
            let first = standard_operator(name, 13, &attributes).unwrap();
            let run = |operator: &dyn Operator, x: &Tensor| {
                let mut values = vec![Some(Value::from(parameter.clone())); 5];
                values[0] = Some(x.clone().into());
                let made = operator.evaluate(&Inputs::new(&values, 1)).unwrap().remove(0);
                made.into_tensor().unwrap()
            };
            let expected = transpose(&run(&*first, &x), &[0, 2, 3, 1]).unwrap();
            let given = run(&*first.permuted(&[0, 2, 3, 1]).unwrap(), &turned);
            let pairs = expected.to_f64s().unwrap().into_iter().zip(given.to_f64s().unwrap());
            for (expected, given) in pairs {
                assert!((expected - given).abs() < 1e-12, "{name}: {expected} {given}");
            }
        }
    }
}
