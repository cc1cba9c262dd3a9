//! ConvTranspose: the adjoint of a convolution, which spreads each input element over a window of the output.

use std::sync::Arc;

use super::conv::{check_bias, group};
use super::image::{ImageShape, channels_last_after};
use super::taps::{OUTSIDE, Taps, kernel_count, runs};
use super::window::{AxisWindow, MAX_SIZE, Padding, entry, sizes};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::linear::product::{accumulate_product, transposed};
use crate::operators::linear::scalar::{Scalar, in_scalars, same_type};
use crate::tensor::{Tensor, checked_count, element_count};
use crate::value::Value;

/// The transposed convolution of images `[N, C, spatial...]` with weights `[C, M / group, kernel...]`
/// and a bias `[M]` or none.
#[derive(Clone, Debug)]
pub struct ConvTranspose {
    /// Steps between windows per axis; empty where all are 1.
    pub strides: Vec<usize>,
    /// Steps between the elements of a window per axis; empty where all are 1.
    pub dilations: Vec<usize>,
    /// How much the output is cut at its ends.
    pub padding: Padding,
    /// Elements added to the end of the output per axis; empty where there are none.
    pub output_padding: Vec<usize>,
    /// The output's spatial shape where the model states it, which then decides the padding.
    pub output_shape: Option<Vec<usize>>,
    /// Groups that channels and filters fall into.
    pub group: usize,
    /// Images, in and out, are `[N, spatial..., C]`; the weights' order stays. Never read from a model.
    pub channels_last: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    Ok(Arc::new(ConvTranspose {
        strides: sizes(attributes, "strides", 1)?.unwrap_or_default(),
        dilations: sizes(attributes, "dilations", 1)?.unwrap_or_default(),
        padding: Padding::from_attributes(attributes)?,
        output_padding: sizes(attributes, "output_padding", 0)?.unwrap_or_default(),
        output_shape: sizes(attributes, "output_shape", 0)?.filter(|shape| !shape.is_empty()),
        group: group(source)?,
        channels_last: false,
    }))
}

impl ConvTranspose {
    /// The window along one of `rank` axes of the convolution whose adjoint this is: its input is our output.
    pub fn axis(
        &self,
        axis: usize,
        rank: usize,
        input: usize,
        kernel: usize,
    ) -> Result<AxisWindow, OperatorError> {
        let stride = entry(&self.strides, axis, rank, 1)?;
        let dilation = entry(&self.dilations, axis, rank, 1)?;
        let extra = entry(&self.output_padding, axis, rank, 0)?;
        let misfit = || {
            OperatorError::Invalid(format!(
                "no transposed window of {kernel} elements, stride {stride}, dilation {dilation} on {input}"
            ))
        };
        let positive = [input, kernel, stride, dilation];
        if positive.iter().any(|size| !(1..=MAX_SIZE).contains(size)) {
            return Err(misfit());
        }
        let full = stride * (input - 1) + extra + dilation * (kernel - 1) + 1;
        let stated = match (&self.output_shape, &self.padding) {
            (Some(shape), _) => Some(entry(shape, axis, rank, 0)?),
            (None, Padding::SameUpper | Padding::SameLower) => Some(input * stride),
            _ => None,
        };
        let (pad_begin, pad_end) = match (stated, &self.padding) {
            (Some(stated), padding) => {
                let total = full.saturating_sub(stated);
                match padding {
                    Padding::SameUpper => (total / 2, total - total / 2),
                    _ => (total - total / 2, total / 2),
                }
            }
            (None, Padding::Explicit { begin, end }) => {
                (entry(begin, axis, rank, 0)?, entry(end, axis, rank, 0)?)
            }
            (None, _) => (0, 0),
        };
        let length = stated.or_else(|| full.checked_sub(pad_begin + pad_end)).ok_or_else(misfit)?;
        Ok(AxisWindow {
            input: length,
            kernel,
            stride,
            dilation,
            pad_begin,
            pad_end,
            output: input,
        })
    }

    fn transposed<T: Scalar>(
        &self,
        x: &Tensor,
        weights: &Tensor,
        bias: Option<&Tensor>,
    ) -> Result<Tensor, OperatorError> {
        let input = ImageShape::split(x.shape(), self.channels_last)?;
        let rank = input.spatial.len();
        let (depth, kernel) = match weights.shape() {
            &[channels, depth, ref kernel @ ..]
                if channels == input.channels
                    && channels.is_multiple_of(self.group)
                    && kernel.len() == rank =>
            {
                (depth, kernel)
            }
            other => {
                return Err(OperatorError::Shapes {
                    left: x.shape().to_vec(),
                    right: other.to_vec(),
                });
            }
        };
        let axes = (0..rank)
            .map(|axis| self.axis(axis, rank, input.spatial[axis], kernel[axis]))
            .collect::<Result<Vec<_>, _>>()?;
        let filters = depth.checked_mul(self.group).ok_or_else(|| {
            OperatorError::Invalid(format!("{depth} filters in {} groups", self.group))
        })?;
        check_bias(bias, filters)?;
        let spatial = axes.iter().map(|axis| axis.input).collect();
        let output = ImageShape { channels: filters, spatial, ..input.clone() };
        let mut y = vec![T::default(); checked_count(&output.joined(), x.data_type())?];
        if let Some(bias) = bias {
            let bias = T::read(bias)?;
            for (index, plane) in output.planes().enumerate() {
                for position in 0..output.positions() {
                    y[plane.at(position)] = bias[index % filters];
                }
            }
        }
        if !y.is_empty() && !x.is_empty() {
            self.spread(&input, &output, &axes, (&T::read(x)?, &T::read(weights)?), &mut y)?;
        }
        T::write(output.joined(), x.data_type(), y)
    }

    /// Adds each input element, weighted, to its window of the output.
    fn spread<T: Scalar>(
        &self,
        input: &ImageShape<usize>,
        output: &ImageShape<usize>,
        axes: &[AxisWindow],
        (x, weights): (&[T], &[T]),
        y: &mut [T],
    ) -> Result<(), OperatorError> {
        let kernel = kernel_count(axes)?;
        let (channels, filters) = (input.channels / self.group, output.channels / self.group);
        // By group, the weights as a matrix from channels to kernel elements of filters.
        let weights: Vec<Vec<T>> = weights
            .chunks_exact(channels * filters * kernel)
            .map(|weights| transposed(weights, channels, filters * kernel))
            .collect();
        let (mut columns, mut spread) = (Vec::new(), Vec::new());
        for run in runs(axes, kernel.max(channels).max(filters * kernel))? {
            let taps = Taps::new(axes, run.clone());
            for image in 0..input.batch {
                for (group, weights) in weights.iter().enumerate() {
                    columns.clear();
                    for channel in group * channels..(group + 1) * channels {
                        let plane = input.plane(image, channel);
                        columns.extend(run.clone().map(|position| x[plane.at(position)]));
                    }
                    spread.clear();
                    spread.resize(filters * kernel * run.len(), T::default());
                    accumulate_product(weights, &columns, &mut spread, channels, run.len());
                    for (filter, spread) in spread.chunks_exact(kernel * run.len()).enumerate() {
                        let plane = output.plane(image, group * filters + filter);
                        for (&target, &element) in taps.rows().flatten().zip(spread) {
                            if target != OUTSIDE {
                                let sum = &mut y[plane.at(target)];
                                *sum = sum.multiply_add(T::ONE, element);
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl Operator for ConvTranspose {
    fn name(&self) -> &'static str {
        "ConvTranspose"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (x, weights) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let bias = inputs.optional_tensor(2)?;
        let data_type = same_type(&[&[x, weights], bias.as_slice()].concat())?;
        let y = in_scalars!(data_type, T => self.transposed::<T>(x, weights, bias))?;
        Ok(vec![y.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let (Some(x), Some(weights)) = (inputs.dimensions(0), inputs.dimensions(1)) else {
            return Ok(vec![Fact::partial(inputs.data_type(0), None)]);
        };
        let input = ImageShape::split(x, self.channels_last)?;
        let rank = input.spatial.len();
        if weights.len() != rank + 2 {
            return Err(OperatorError::Invalid(format!(
                "weights of rank {} on {rank} spatial axes",
                weights.len()
            )));
        }
        let along = |axis: usize| match (input.spatial[axis], weights[axis + 2]) {
            (Some(input), Some(kernel)) => {
                self.axis(axis, rank, input, kernel).map(|window| Some(window.input))
            }
            _ => Ok(None),
        };
        let spatial = (0..rank).map(along).collect::<Result<_, _>>()?;
        let channels = weights[1].and_then(|depth| depth.checked_mul(self.group));
        let dimensions = ImageShape { channels, spatial, ..input }.joined();
        Ok(vec![Fact::partial(inputs.data_type(0), Some(dimensions))])
    }

    fn flops(&self, inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        let count = inputs.fact(0).and_then(Fact::element_count).unwrap_or(0);
        let weights = inputs.shape(1);
        let per_input = weights.and_then(|shape| element_count(shape.get(1..)?)).unwrap_or(0);
        (count as u64).saturating_mul(per_input as u64).saturating_mul(2)
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let channels_last = channels_last_after(self.channels_last, permutation)?;
        Some(Arc::new(ConvTranspose { channels_last, ..self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::standard_operator;
    use crate::operators::layout::transpose;

    #[test]
    fn channels_last_computes_the_same() {
        let attributes = Attributes::new()
            .with("group", 2)
            .with("strides", vec![2, 3])
            .with("pads", vec![1, 0, 0, 2])
            .with("output_padding", vec![1, 0]);
        let ramp = |shape: &[usize]| {
            let count = shape.iter().product::<usize>();
            let elements = (0..count).map(|i| (i * 7 % 13) as i32 - 5).collect();
            Tensor::from_vec(shape.to_vec(), elements).unwrap()
        };
        let run = |operator: &dyn Operator, x: &Tensor| {
            let values = [x.clone(), ramp(&[4, 3, 2, 3]), ramp(&[6])];
            let values = values.map(|tensor| Some(Value::from(tensor)));
            operator.evaluate(&Inputs::new(&values, 1)).unwrap().remove(0).into_tensor().unwrap()
        };
        let first = standard_operator("ConvTranspose", 11, &attributes).unwrap();
        let x = ramp(&[2, 4, 3, 2]);
        let expected = run(&*first, &x);
        assert_eq!(expected.shape(), &[2, 6, 6, 4]);
        let last = first.permuted(&[0, 2, 3, 1]).unwrap();
        let given = run(&*last, &transpose(&x, &[0, 2, 3, 1]).unwrap());
        assert_eq!(given, transpose(&expected, &[0, 2, 3, 1]).unwrap());
    }
}
