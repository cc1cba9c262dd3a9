//! STFT: the Fourier transforms of overlapping frames of a signal.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

use super::fourier::{self, Complex};
use super::scalar::{positive, scalar_integer};

#[derive(Debug)]
struct Stft {
    one_sided: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Stft { one_sided: source.attributes.flag_or("onesided", true)? }))
}

impl Stft {
    fn bins(&self, frame_length: usize) -> usize {
        if self.one_sided { frame_length / 2 + 1 } else { frame_length }
    }
}

fn frame_count(length: usize, frame: usize, step: usize) -> Result<usize, OperatorError> {
    match length.checked_sub(frame) {
        Some(rest) => Ok(rest / step + 1),
        None => Err(OperatorError::Invalid(format!(
            "a frame of {frame} samples in a signal of {length}"
        ))),
    }
}

impl Operator for Stft {
    fn name(&self) -> &'static str {
        "STFT"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let signal = inputs.tensor(0)?;
        let &[batch, length, parts @ 1..=2] = signal.shape() else {
            return Err(OperatorError::Invalid(format!(
                "a signal of shape {:?} is not [batch, length, 1 or 2]",
                signal.shape()
            )));
        };
        if self.one_sided && parts == 2 {
            return Err(OperatorError::Invalid(
                "a complex signal has no one-sided spectrum".into(),
            ));
        }
        let step = positive("frame_step", scalar_integer(inputs.tensor(1)?)?)?;
        let window = match inputs.optional_tensor(2)? {
            None => None,
            Some(window) if window.rank() == 1 => Some(window.to_f64s()?),
            Some(window) => {
                return Err(OperatorError::Invalid(format!("a window of rank {}", window.rank())));
            }
        };
        let frame = match (inputs.optional_tensor(3)?, &window) {
            (Some(given), _) => scalar_integer(given)?,
            (None, Some(window)) => window.len() as i64,
            (None, None) => length as i64,
        };
        let frame = positive("frame_length", frame)?;
        let frames = frame_count(length, frame, step)?;
        let bins = self.bins(frame);
        let shape = vec![batch, frames, bins, 2];
        let count = checked_count(&shape, signal.data_type())?;

        let elements = signal.to_f64s()?;
        let mut output = Vec::with_capacity(count);
        for item in 0..batch {
            for index in 0..frames {
                let start = (item * length + index * step) * parts;
                let mut samples: Vec<Complex> = elements[start..start + frame * parts]
                    .chunks_exact(parts)
                    .map(|sample| [sample[0], sample.get(1).copied().unwrap_or(0.0)])
                    .collect();
                if let Some(window) = &window {
                    for (at, sample) in samples.iter_mut().enumerate() {
                        let weight = window.get(at).copied().unwrap_or(0.0);
                        *sample = sample.map(|part| part * weight);
                    }
                }
                output.extend_from_slice(fourier::forward(&samples)[..bins].as_flattened());
            }
        }
        Ok(vec![Tensor::from_f64s(shape, signal.data_type(), output)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let at = |index: usize, axis: usize| *inputs.dimensions(index)?.get(axis)?;
        let integer = |index: usize, name: &str| match inputs.constant(index) {
            Some(given) => positive(name, scalar_integer(given)?).map(Some),
            None => Ok(None),
        };
        let length = at(0, 1);
        let step = integer(1, "frame_step")?;
        let frame = match (inputs.fact(3), inputs.fact(2)) {
            (Some(_), _) => integer(3, "frame_length")?,
            (None, Some(_)) => at(2, 0),
            (None, None) => length,
        };
        let frames = match (length, frame, step) {
            (Some(length), Some(frame), Some(step)) => Some(frame_count(length, frame, step)?),
            _ => None,
        };
        let bins = frame.map(|frame| self.bins(frame));
        let dimensions = vec![at(0, 0), frames, bins, Some(2)];
        Ok(vec![Fact::partial(inputs.data_type(0), Some(dimensions))])
    }
}
