//! Owns the convolution that the others are tested against: seven loops in double precision.

use super::problem::ConvProblem;
use crate::kernels::testing::values;
use crate::{Activation, activation};

/// A problem with random values.
pub(super) struct Case {
    pub(super) problem: ConvProblem,
    pub(super) input: Vec<f32>,
    pub(super) weights: Vec<f32>,
    pub(super) bias: Option<Vec<f32>>,
    pub(super) residual: Option<Vec<f32>>,
    pub(super) activation: Activation,
}

impl Case {
    pub(super) fn new(problem: ConvProblem, is_fused: bool, activation: Activation) -> Self {
        let geometry = problem.geometry().unwrap();
        Self {
            problem,
            input: values(geometry.input_elements, 1),
            weights: values(geometry.weight_elements, 2),
            bias: is_fused.then(|| values(problem.channels_out, 3)),
            residual: is_fused.then(|| values(geometry.output_elements, 4)),
            activation,
        }
    }

    pub(super) fn output_elements(&self) -> usize {
        self.problem.geometry().unwrap().output_elements
    }

    /// The result, channels last.
    pub(super) fn expected(&self) -> Vec<f64> {
        let ConvProblem { batch, height, width, channels_in, channels_out, group, .. } =
            self.problem;
        let ConvProblem { kernel, strides, dilations, pads_begin, .. } = self.problem;
        let [output_height, output_width] = self.problem.output_size().unwrap();
        let group_in = channels_in / group;
        let group_out = channels_out / group;
        let mut output = Vec::with_capacity(self.output_elements());
        for index in 0..self.output_elements() {
            let oc = index % channels_out;
            let ox = index / channels_out % output_width;
            let oy = index / channels_out / output_width % output_height;
            let n = index / channels_out / output_width / output_height;
            assert!(n < batch);
            let mut sum = self.bias.as_ref().map_or(0.0, |bias| f64::from(bias[oc]));
            for ky in 0..kernel[0] {
                for kx in 0..kernel[1] {
                    let y = (oy * strides[0] + ky * dilations[0]).wrapping_sub(pads_begin[0]);
                    let x = (ox * strides[1] + kx * dilations[1]).wrapping_sub(pads_begin[1]);
                    if y >= height || x >= width {
                        continue;
                    }
                    for ic in 0..group_in {
                        let channel = oc / group_out * group_in + ic;
                        let pixel =
                            self.input[((n * height + y) * width + x) * channels_in + channel];
                        let weight =
                            self.weights[((oc * group_in + ic) * kernel[0] + ky) * kernel[1] + kx];
                        sum += f64::from(pixel) * f64::from(weight);
                    }
                }
            }
            if let Some(residual) = &self.residual {
                sum += f64::from(residual[index]);
            }
            output.push(activation::tests::reference(self.activation, sum));
        }
        output
    }
}
