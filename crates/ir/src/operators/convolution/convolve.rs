//! The sum that every convolution is, over any number type.

use super::image::ImageShape;
use super::taps::{OUTSIDE, Taps, kernel_count, runs};
use super::window::AxisWindow;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::operators::linear::product::accumulate_product;
use crate::operators::linear::scalar::Scalar;
use crate::tensor::checked_count;

/// A convolution's sizes, checked against each other.
#[derive(Clone, Debug)]
pub(crate) struct ConvolutionSizes {
    pub(crate) input: ImageShape<usize>,
    pub(crate) output: ImageShape<usize>,
    pub(crate) group: usize,
    pub(crate) axes: Vec<AxisWindow>,
}

impl ConvolutionSizes {
    /// Checks that channels, filters and groups of `weights`' shape `[filters, channels / group, kernel...]` fit `input`.
    pub(crate) fn new(
        input: ImageShape<usize>,
        weights: &[usize],
        group: usize,
        axes: Vec<AxisWindow>,
    ) -> Result<Self, OperatorError> {
        let (filters, depth) = match weights {
            &[filters, depth, ref kernel @ ..] if kernel.len() == axes.len() => (filters, depth),
            _ => {
                return Err(OperatorError::Shapes {
                    left: input.joined(),
                    right: weights.to_vec(),
                });
            }
        };
        if group == 0
            || !filters.is_multiple_of(group)
            || Some(input.channels) != depth.checked_mul(group)
        {
            return Err(OperatorError::Invalid(format!(
                "{filters} filters of {depth} channels in {group} groups on {} channels",
                input.channels
            )));
        }
        let spatial = axes.iter().map(|axis| axis.output).collect();
        let output = ImageShape { channels: filters, spatial, ..input.clone() };
        Ok(Self { input, output, group, axes })
    }
}

/// The convolution of `x` with `weights`, given in ONNX's order; padding counts as zero.
pub(crate) fn convolve<T: Scalar>(
    sizes: &ConvolutionSizes,
    x: &[T],
    weights: &[T],
    bias: Option<&[T]>,
    data_type: DataType,
) -> Result<Vec<T>, OperatorError> {
    let ConvolutionSizes { input, output, group, axes } = sizes;
    let mut y = vec![T::default(); checked_count(&output.joined(), data_type)?];
    if y.is_empty() {
        return Ok(y);
    }
    let kernel = kernel_count(axes)?;
    let (channels, filters) = (input.channels / group, output.channels / group);
    let depth = channels * kernel;
    let (mut columns, mut sums) = (Vec::new(), Vec::new());
    for run in runs(axes, depth)? {
        let taps = Taps::new(axes, run.clone());
        for (image, group) in (0..input.batch).flat_map(|i| (0..*group).map(move |g| (i, g))) {
            columns.clear();
            for channel in group * channels..(group + 1) * channels {
                let plane = input.plane(image, channel);
                for row in taps.rows() {
                    columns.extend(row.iter().map(|&source| match source {
                        OUTSIDE => T::default(),
                        source => x[plane.at(source)],
                    }));
                }
            }
            sums.clear();
            for filter in group * filters..(group + 1) * filters {
                let start = bias.and_then(|bias| bias.get(filter)).copied().unwrap_or_default();
                sums.resize(sums.len() + run.len(), start);
            }
            let weights = &weights[group * filters * depth..][..filters * depth];
            accumulate_product(weights, &columns, &mut sums, depth, run.len());
            for (filter, sums) in sums.chunks_exact(run.len()).enumerate() {
                let plane = output.plane(image, group * filters + filter);
                for (position, &sum) in run.clone().zip(sums) {
                    y[plane.at(position)] = sum;
                }
            }
        }
    }
    Ok(y)
}
