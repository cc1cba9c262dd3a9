//! BatchNormalization: each channel scaled and shifted by statistics kept from training, or by its own.

use std::sync::Arc;

use super::channels::{check_parameters, permuted_axis};
use crate::axis::around_axis;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// `(x - mean) / sqrt(variance + epsilon) * scale + bias` per channel.
/// In training, mean and variance are the batch's own and the running ones are updated.
#[derive(Clone, Debug)]
pub struct BatchNormalization {
    /// Added to the variance.
    pub epsilon: f32,
    /// The share of the old running statistics in the new ones.
    pub momentum: f32,
    /// Statistics come from the batch.
    pub training: bool,
    /// The axis of the channels.
    pub channel_axis: usize,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    if source.opset < 9 && attributes.int_or("spatial", 1)? == 0 {
        return Err(OperatorError::Unsupported("BatchNormalization with spatial=0".into()));
    }
    // Before version 14 a node trains where it asks for the statistics.
    let training = match source.opset {
        ..14 => source.output_count > 1,
        _ => attributes.int_or("training_mode", 0)? != 0,
    };
    Ok(Arc::new(BatchNormalization {
        epsilon: attributes.float_or("epsilon", 1e-5)?,
        momentum: attributes.float_or("momentum", 0.9)?,
        training,
        channel_axis: 1,
    }))
}

impl BatchNormalization {
    /// Mean and variance of each channel over all other axes.
    fn statistics(&self, x: &[f64], shape: &[usize]) -> (Vec<f64>, Vec<f64>) {
        let (_, channels, after) = around_axis(shape, self.channel_axis);
        let count = (x.len() / channels.max(1)) as f64;
        let summed = |value: &dyn Fn(usize, f64) -> f64| {
            let mut sums = vec![0.0; channels];
            for (chunk, elements) in x.chunks(after.max(1)).enumerate() {
                let channel = chunk % channels;
                sums[channel] += elements.iter().map(|&x| value(channel, x)).sum::<f64>();
            }
            sums.iter().map(|sum| sum / count).collect::<Vec<_>>()
        };
        let means = summed(&|_, x| x);
        let variances = summed(&|channel, x| (x - means[channel]).powi(2));
        (means, variances)
    }
}

impl Operator for BatchNormalization {
    fn name(&self) -> &'static str {
        "BatchNormalization"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let shape = x.shape().to_vec();
        let parameters = [1, 2, 3, 4].map(|index| inputs.tensor(index));
        let channels = check_parameters(&shape, self.channel_axis, &parameters)?;
        let [scale, bias, mean, variance] = parameters;
        let (scale, bias) = (scale?.to_f64s()?, bias?.to_f64s()?);
        let (mean, variance) = (mean?, variance?);
        let mut elements = x.to_f64s()?;
        let running = (mean.to_f64s()?, variance.to_f64s()?);
        let batch = self.training.then(|| self.statistics(&elements, &shape));
        let (means, variances) = batch.as_ref().unwrap_or(&running);
        let (_, _, after) = around_axis(&shape, self.channel_axis);
        for (chunk, elements) in elements.chunks_mut(after.max(1)).enumerate() {
            let channel = chunk % channels;
            let factor = scale[channel] / (variances[channel] + f64::from(self.epsilon)).sqrt();
            let offset = bias[channel] - means[channel] * factor;
            elements.iter_mut().for_each(|x| *x = *x * factor + offset);
        }
        let mut outputs: Vec<Value> =
            vec![Tensor::from_f64s(shape, x.data_type(), elements)?.into()];
        if let Some((means, variances)) = &batch {
            let momentum = f64::from(self.momentum);
            let updated = |old: &[f64], new: &[f64]| {
                old.iter()
                    .zip(new)
                    .map(|(old, new)| old * momentum + new * (1.0 - momentum))
                    .collect()
            };
            let of_type = |like: &Tensor, elements| {
                Tensor::from_f64s(vec![channels], like.data_type(), elements).map(Value::from)
            };
            outputs.push(of_type(mean, updated(&running.0, means))?);
            outputs.push(of_type(variance, updated(&running.1, variances))?);
            // Before version 14 the batch's own statistics came too.
            outputs.push(of_type(mean, means.clone())?);
            outputs.push(of_type(variance, variances.clone())?);
        }
        outputs.truncate(inputs.output_count().max(1));
        Ok(outputs)
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let x = inputs.dimensions(0);
        let y = Fact::partial(inputs.data_type(0), x.map(<[_]>::to_vec));
        let channels = x.and_then(|x| x.get(self.channel_axis).copied().flatten());
        let statistics =
            [3, 4, 3, 4].map(|index| Fact::partial(inputs.data_type(index), Some(vec![channels])));
        let all = std::iter::once(y).chain(statistics);
        Ok(all.take(inputs.output_count().max(1)).collect())
    }

    fn flops(&self, _inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        2 * outputs.first().and_then(Fact::element_count).unwrap_or(0) as u64
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let channel_axis = permuted_axis(permutation, self.channel_axis)?;
        (!self.training).then(|| {
            Arc::new(BatchNormalization { channel_axis, ..self.clone() }) as Arc<dyn Operator>
        })
    }
}
