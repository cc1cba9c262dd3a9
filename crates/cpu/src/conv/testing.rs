//! Owns what the tests of convolutions share: problems with random values, and their results in double precision.

use super::problem::ConvProblem;
use super::reference::Reference;
use crate::Activation;
use crate::kernels::testing::values;

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
        let geometry = self.problem.geometry().unwrap();
        let reference = Reference { geometry, input: &self.input, weights: &self.weights };
        let channels = self.problem.channels_out;
        let expected = (0..self.output_elements()).map(|index| {
            let bias = self.bias.as_ref().map_or(0.0, |bias| f64::from(bias[index % channels]));
            let residual =
                self.residual.as_ref().map_or(0.0, |residual| f64::from(residual[index]));
            self.activation.in_double(reference.sum(index) + bias + residual)
        });
        expected.collect()
    }
}
