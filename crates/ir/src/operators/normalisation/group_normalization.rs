//! GroupNormalization: each group of channels of each image brought to mean 0 and variance 1, then scaled and shifted.

use std::sync::Arc;

use super::statistics::mean_and_inverse;
use crate::axis::around_axis;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

#[derive(Clone, Debug)]
struct GroupNormalization {
    groups: usize,
    epsilon: f32,
    /// Scale and bias have one element per group, as in version 18, instead of one per channel.
    parameters_per_group: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let groups = source.attributes.int_or("num_groups", 0)?;
    let groups = usize::try_from(groups).ok().filter(|&groups| groups > 0).ok_or_else(|| {
        OperatorError::Attribute { name: "num_groups".into(), problem: format!("{groups} groups") }
    })?;
    Ok(Arc::new(GroupNormalization {
        groups,
        epsilon: source.attributes.float_or("epsilon", 1e-5)?,
        parameters_per_group: source.opset < 21,
    }))
}

impl Operator for GroupNormalization {
    fn name(&self) -> &'static str {
        "GroupNormalization"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (x, scale, bias) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let shape = x.shape();
        if shape.len() < 2 || !shape[1].is_multiple_of(self.groups) {
            return Err(OperatorError::Invalid(format!(
                "{} groups of channels of {shape:?}",
                self.groups
            )));
        }
        let (_, channels, after) = around_axis(shape, 1);
        let parameters = if self.parameters_per_group { self.groups } else { channels };
        for parameter in [scale, bias] {
            if parameter.shape() != [parameters] {
                return Err(OperatorError::Shapes {
                    left: shape.to_vec(),
                    right: parameter.shape().to_vec(),
                });
            }
        }
        let (scale, bias) = (scale.to_f64s()?, bias.to_f64s()?);
        let per_group = channels / self.groups;
        let mut elements = x.to_f64s()?;
        for (index, group) in elements.chunks_mut((per_group * after).max(1)).enumerate() {
            let (mean, inverse) = mean_and_inverse(|| group.iter().copied(), self.epsilon);
            for (channel, elements) in group.chunks_mut(after.max(1)).enumerate() {
                let group = index % self.groups;
                let parameter =
                    if self.parameters_per_group { group } else { group * per_group + channel };
                for x in elements {
                    *x = (*x - mean) * inverse * scale[parameter] + bias[parameter];
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
}
