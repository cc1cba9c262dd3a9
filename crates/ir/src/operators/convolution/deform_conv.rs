//! DeformConv: a convolution whose windows read the input at points moved by learned offsets.

use std::sync::Arc;

use super::conv::{Conv, check_bias};
use super::point::{combined, linear_taps};
use super::taps::{kernel_count, runs};
use super::window::AxisWindow;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::linear::product::accumulate_product;
use crate::tensor::{Tensor, checked_count, element_count};
use crate::value::Value;

#[derive(Clone, Debug)]
struct DeformConv {
    conv: Conv,
    /// Groups of channels that share offsets.
    offset_group: usize,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let groups = source.attributes.int_or("offset_group", 1)?;
    let offset_group = usize::try_from(groups).ok().filter(|&groups| groups > 0);
    let offset_group = offset_group.ok_or_else(|| OperatorError::Attribute {
        name: "offset_group".into(),
        problem: format!("{groups} groups"),
    })?;
    Ok(Arc::new(DeformConv { conv: Conv::from_source(source)?, offset_group }))
}

/// The point a kernel element reads, undisturbed, along each axis.
fn regular_point(axes: &[AxisWindow], position: usize, tap: usize) -> Vec<f64> {
    let (mut position, mut tap) = (position, tap);
    let mut point: Vec<f64> = axes
        .iter()
        .rev()
        .map(|axis| {
            let place = position % axis.output * axis.stride + tap % axis.kernel * axis.dilation;
            position /= axis.output;
            tap /= axis.kernel;
            place as f64 - axis.pad_begin as f64
        })
        .collect();
    point.reverse();
    point
}

impl Operator for DeformConv {
    fn name(&self) -> &'static str {
        "DeformConv"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (x, weights, offset) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let (bias, mask) = (inputs.optional_tensor(3)?, inputs.optional_tensor(4)?);
        let sizes = self.conv.sizes(x.shape(), weights.shape())?;
        let (input, output, axes) = (&sizes.input, &sizes.output, &sizes.axes);
        let (rank, kernel, group) = (axes.len(), kernel_count(axes)?, sizes.group);
        check_bias(bias, output.channels)?;
        let expected = |tensor: &Tensor, per_tap: usize| {
            let channels = element_count(&[self.offset_group, kernel, per_tap]);
            let shape = [&[output.batch, channels.unwrap_or(0)], &output.spatial[..]].concat();
            if tensor.shape() == shape && input.channels.is_multiple_of(self.offset_group) {
                Ok(())
            } else {
                Err(OperatorError::Shapes { left: shape, right: tensor.shape().to_vec() })
            }
        };
        expected(offset, rank)?;
        mask.map_or(Ok(()), |mask| expected(mask, 1))?;
        let mut y = vec![0.0; checked_count(&output.joined(), x.data_type())?];
        let (elements, weights, offsets) = (x.to_f64s()?, weights.to_f64s()?, offset.to_f64s()?);
        let bias = bias.map(Tensor::to_f64s).transpose()?;
        let mask = mask.map(Tensor::to_f64s).transpose()?;
        let (positions, shared) = (output.positions(), input.channels / self.offset_group);
        let (channels, filters) = (input.channels / group, output.channels / group);
        let depth = channels * kernel;
        let all_runs: Vec<_> = if y.is_empty() { vec![] } else { runs(axes, depth)?.collect() };
        for run in all_runs {
            let width = run.len();
            for image in 0..input.batch {
                let mut columns = vec![0.0; input.channels * kernel * width];
                for (tap, offset_group) in
                    (0..self.offset_group).flat_map(|g| (0..kernel).map(move |tap| (tap, g)))
                {
                    let row = (image * self.offset_group + offset_group) * kernel + tap;
                    for (column, position) in run.clone().enumerate() {
                        let point = regular_point(axes, position, tap);
                        let taps: Vec<_> = (0..rank)
                            .map(|axis| {
                                let moved = offsets[(row * rank + axis) * positions + position];
                                linear_taps(point[axis] + moved, input.spatial[axis])
                            })
                            .collect();
                        let taps = combined(&taps, &input.spatial);
                        let factor = mask.as_ref().map_or(1.0, |m| m[row * positions + position]);
                        for channel in offset_group * shared..(offset_group + 1) * shared {
                            let plane = input.plane(image, channel);
                            let sampled: f64 = taps
                                .iter()
                                .map(|&(p, weight)| weight * elements[plane.at(p)])
                                .sum();
                            columns[(channel * kernel + tap) * width + column] = sampled * factor;
                        }
                    }
                }
                for group in 0..group {
                    let mut sums = vec![0.0; filters * width];
                    accumulate_product(
                        &weights[group * filters * depth..][..filters * depth],
                        &columns[group * depth * width..][..depth * width],
                        &mut sums,
                        depth,
                        width,
                    );
                    for (row, sums) in sums.chunks_exact(width).enumerate() {
                        let filter = group * filters + row;
                        let start = bias.as_ref().map_or(0.0, |bias| bias[filter]);
                        let plane = output.plane(image, filter);
                        for (position, sum) in run.clone().zip(sums) {
                            y[plane.at(position)] = start + sum;
                        }
                    }
                }
            }
        }
        Ok(vec![Tensor::from_f64s(output.joined(), x.data_type(), y)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        self.conv.infer(inputs)
    }

    fn flops(&self, inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        self.conv.flops(inputs, outputs)
    }
}
