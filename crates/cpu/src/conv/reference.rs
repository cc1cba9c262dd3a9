//! Owns the convolution that the others are held against: loops in double precision.

use super::problem::{ConvProblem, Geometry};

/// A convolution by its definition, one element at a time.
#[derive(Clone, Copy)]
pub(crate) struct Reference<'a> {
    pub(crate) geometry: Geometry,
    /// Channels last.
    pub(crate) input: &'a [f32],
    /// `[channels_out, channels_in / group, height, width]`.
    pub(crate) weights: &'a [f32],
}

impl Reference<'_> {
    /// The sum for one element of the output, counted with channels last.
    pub(crate) fn sum(&self, index: usize) -> f64 {
        let Geometry { problem, output_height, output_width, .. } = self.geometry;
        let ConvProblem { height, width, channels_in, channels_out, group, .. } = problem;
        let ConvProblem { kernel, strides, dilations, pads_begin, .. } = problem;
        let (group_in, group_out) = (channels_in / group, channels_out / group);
        let output_channel = index % channels_out;
        let output_column = index / channels_out % output_width;
        let output_row = index / channels_out / output_width % output_height;
        let image = index / channels_out / output_width / output_height;
        let first_channel = output_channel / group_out * group_in;
        let filter = output_channel * group_in * kernel[0] * kernel[1];
        let mut sum = 0.0;
        for kernel_row in 0..kernel[0] {
            for kernel_column in 0..kernel[1] {
                let row = (output_row * strides[0] + kernel_row * dilations[0])
                    .wrapping_sub(pads_begin[0]);
                let column = (output_column * strides[1] + kernel_column * dilations[1])
                    .wrapping_sub(pads_begin[1]);
                if row >= height || column >= width {
                    continue;
                }
                let pixel = ((image * height + row) * width + column) * channels_in + first_channel;
                let weight = filter + kernel_row * kernel[1] + kernel_column;
                let pixels = &self.input[pixel..pixel + group_in];
                let weights = self.weights[weight..].iter().step_by(kernel[0] * kernel[1]);
                sum += pixels
                    .iter()
                    .zip(weights)
                    .map(|(&pixel, &weight)| f64::from(pixel) * f64::from(weight))
                    .sum::<f64>();
            }
        }
        sum
    }
}
