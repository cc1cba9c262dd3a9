//! CausalConvWithState: a depthwise convolution that looks only back, and carries what it looks back on.

use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

#[derive(Debug)]
struct CausalConvolution {
    /// Whether the result goes through `x * sigmoid(x)`.
    silu: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let silu = match source.attributes.string_or("activation", "none")? {
        "none" => false,
        "silu" | "swish" => true,
        other => {
            return Err(OperatorError::Attribute {
                name: "activation".into(),
                problem: format!("'{other}' is not an activation"),
            });
        }
    };
    Ok(Arc::new(CausalConvolution { silu }))
}

fn check_shape(tensor: &Tensor, expected: &[usize]) -> Result<(), OperatorError> {
    if tensor.shape() == expected {
        return Ok(());
    }
    Err(OperatorError::Shapes { left: tensor.shape().to_vec(), right: expected.to_vec() })
}

impl Operator for CausalConvolution {
    fn name(&self) -> &'static str {
        "CausalConvWithState"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (x, w) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let (&[batch, channels, length], &[_, _, taps]) = (x.shape(), w.shape()) else {
            return Err(OperatorError::Shapes {
                left: x.shape().to_vec(),
                right: w.shape().to_vec(),
            });
        };
        check_shape(w, &[channels, 1, taps])?;
        let carried = taps
            .checked_sub(1)
            .ok_or_else(|| OperatorError::Invalid("a kernel without taps".into()))?;
        let data_type = x.data_type();
        let state_shape = vec![batch, channels, carried];
        let state_count = checked_count(&state_shape, DataType::F64)?;
        // An empty tensor may still name huge dimensions, and work is done for each line.
        checked_count(&[batch.max(1), channels.max(1)], DataType::F64)?;
        let bias = match inputs.optional_tensor(2)? {
            None => vec![0.0; channels],
            Some(bias) => {
                check_shape(bias, &[channels])?;
                bias.to_f64s()?
            }
        };
        let past = match inputs.optional_tensor(3)? {
            None => vec![0.0; state_count],
            Some(past) => {
                check_shape(past, &state_shape)?;
                past.to_f64s()?
            }
        };
        let (elements, weights) = (x.to_f64s()?, w.to_f64s()?);
        let mut output = Vec::with_capacity(elements.len());
        let mut present = Vec::with_capacity(state_count);
        for line in 0..batch * channels {
            let channel = line % channels;
            let kernel = &weights[channel * taps..][..taps];
            let past = &past[line * carried..][..carried];
            let padded = [past, &elements[line * length..][..length]].concat();
            output.extend(padded.windows(taps).map(|window| {
                let sum: f64 = window.iter().zip(kernel).map(|(x, weight)| x * weight).sum();
                let sum = bias[channel] + sum;
                if self.silu { sum / (1.0 + (-sum).exp()) } else { sum }
            }));
            present.extend_from_slice(&padded[length..]);
        }
        let mut outputs = vec![
            Tensor::from_f64s(x.shape().to_vec(), data_type, output)?.into(),
            Tensor::from_f64s(state_shape, data_type, present)?.into(),
        ];
        outputs.truncate(inputs.output_count());
        Ok(outputs)
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let at = |index: usize, axis: usize| *inputs.dimensions(index)?.get(axis)?;
        let data_type = inputs.data_type(0);
        let carried = at(1, 2).and_then(|taps| taps.checked_sub(1));
        let channels = at(0, 1).or_else(|| at(1, 0));
        let mut facts = vec![
            Fact::partial(data_type, Some(vec![at(0, 0), channels, at(0, 2)])),
            Fact::partial(data_type, Some(vec![at(0, 0), channels, carried])),
        ];
        facts.truncate(inputs.output_count());
        Ok(facts)
    }

    fn flops(&self, inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        let taps = inputs.shape(1).and_then(|shape| shape.last().copied()).unwrap_or(0);
        let count = outputs.first().and_then(Fact::element_count).unwrap_or(0);
        (taps as u64).saturating_mul(count as u64).saturating_mul(2)
    }
}
