//! DFT: the discrete Fourier transform along one axis; the last axis holds real and imaginary parts.

use std::sync::Arc;

use crate::axis::{around_axis, normalise_axis};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

use super::fourier::{self, Complex};
use super::scalar::{positive, scalar_integer};

#[derive(Debug)]
struct Dft {
    inverse: bool,
    one_sided: bool,
    /// The axis, where the operator set's version has it as an attribute rather than an input.
    axis: Option<i64>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let axis = if source.opset < 20 { Some(attributes.int_or("axis", 1)?) } else { None };
    Ok(Arc::new(Dft {
        inverse: attributes.flag_or("inverse", false)?,
        one_sided: attributes.flag_or("onesided", false)?,
        axis,
    }))
}

fn check_axis(axis: i64, rank: usize) -> Result<usize, OperatorError> {
    let axis = normalise_axis(axis, rank)?;
    if axis + 1 == rank {
        return Err(OperatorError::Axis { axis: axis as i64, rank });
    }
    Ok(axis)
}

impl Dft {
    /// One-sided spectrum to real signal.
    fn is_real_inverse(&self) -> bool {
        self.inverse && self.one_sided
    }

    /// The transform's length where the node gives none.
    fn default_length(&self, dimension: usize) -> usize {
        if self.is_real_inverse() {
            dimension.saturating_sub(1).saturating_mul(2)
        } else {
            dimension
        }
    }

    /// The axis' size in the output.
    fn output_size(&self, length: usize) -> usize {
        if self.one_sided && !self.inverse { length / 2 + 1 } else { length }
    }

    /// Transforms one line, zero-padded or cut to `length`.
    fn line(&self, mut line: Vec<Complex>, length: usize) -> Vec<Complex> {
        if self.is_real_inverse() {
            line.resize(length / 2 + 1, [0.0; 2]);
            for mirrored in length / 2 + 1..length {
                let [real, imaginary] = line[length - mirrored];
                line.push([real, -imaginary]);
            }
        }
        line.resize(length, [0.0; 2]);
        if self.inverse {
            return fourier::inverse(&line);
        }
        let mut spectrum = fourier::forward(&line);
        spectrum.truncate(self.output_size(length));
        spectrum
    }
}

impl Operator for Dft {
    fn name(&self) -> &'static str {
        "DFT"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let axis = match (self.axis, inputs.optional_tensor(2)?) {
            (Some(axis), _) => axis,
            (None, Some(given)) => scalar_integer(given)?,
            (None, None) => -2,
        };
        let axis = check_axis(axis, x.rank())?;
        let parts = x.shape()[x.rank() - 1];
        if !(1..=2).contains(&parts) {
            return Err(OperatorError::Invalid(format!("{parts} parts of a complex number")));
        }
        let along = x.shape()[axis];
        let length = match inputs.optional_tensor(1)? {
            Some(given) => positive("dft_length", scalar_integer(given)?)?,
            None => self.default_length(along),
        };
        if length == 0 {
            return Err(OperatorError::Invalid("a transform of length 0".into()));
        }
        let output_size = self.output_size(length);
        let output_parts = if self.is_real_inverse() { 1 } else { 2 };
        let mut shape = x.shape().to_vec();
        shape[axis] = output_size;
        shape[x.rank() - 1] = output_parts;
        let count = checked_count(&shape, x.data_type())?;
        if count == 0 {
            return Ok(vec![Tensor::from_f64s(shape, x.data_type(), Vec::new())?.into()]);
        }
        // A one-sided transform still works on the whole line.
        checked_count(&[length], crate::DataType::Complex128)?;

        let elements = x.to_f64s()?;
        let (before, _, after) = around_axis(&x.shape()[..x.rank() - 1], axis);
        let mut output = vec![0.0; count];
        for outer in 0..before {
            for inner in 0..after {
                let from = |index: usize| ((outer * along + index) * after + inner) * parts;
                let line = (0..along.min(length))
                    .map(|index| match &elements[from(index)..][..parts] {
                        &[real, imaginary] => [real, imaginary],
                        real => [real[0], 0.0],
                    })
                    .collect();
                for (index, value) in self.line(line, length).iter().enumerate() {
                    let to = ((outer * output_size + index) * after + inner) * output_parts;
                    output[to..to + output_parts].copy_from_slice(&value[..output_parts]);
                }
            }
        }
        Ok(vec![Tensor::from_f64s(shape, x.data_type(), output)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let unknown = |dimensions| Ok(vec![Fact::partial(inputs.data_type(0), dimensions)]);
        let Some(from) = inputs.dimensions(0) else { return unknown(None) };
        let axis = match (self.axis, inputs.fact(2)) {
            (Some(axis), _) => axis,
            (None, None) => -2,
            (None, Some(_)) => match inputs.constant(2) {
                Some(given) => scalar_integer(given)?,
                None => return unknown(Some(vec![None; from.len()])),
            },
        };
        let axis = check_axis(axis, from.len())?;
        let length = match inputs.fact(1) {
            None => from[axis].map(|dimension| self.default_length(dimension)),
            Some(_) => match inputs.constant(1) {
                Some(given) => Some(positive("dft_length", scalar_integer(given)?)?),
                None => None,
            },
        };
        let mut dimensions = from.to_vec();
        dimensions[axis] = length.map(|length| self.output_size(length));
        dimensions[from.len() - 1] = Some(if self.is_real_inverse() { 1 } else { 2 });
        unknown(Some(dimensions))
    }
}
