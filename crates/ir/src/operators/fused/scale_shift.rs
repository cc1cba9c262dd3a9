//! ScaleShift: each channel times a factor plus a term; what is left of a batch normalisation that nothing absorbs.

use std::sync::Arc;

use crate::activation::Activation;
use crate::axis::around_axis;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// `activation(x * scale[c] + shift[c])` for `f32` inputs x, scale `[C]` and shift `[C]`.
#[derive(Clone, Debug)]
pub struct ScaleShift {
    /// The axis of `x` that counts channels.
    pub channel_axis: usize,
    /// What follows.
    pub activation: Option<Activation>,
}

impl Operator for ScaleShift {
    fn name(&self) -> &'static str {
        "ScaleShift"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let (scale, shift) =
            (inputs.tensor(1)?.elements::<f32>()?, inputs.tensor(2)?.elements::<f32>()?);
        if self.channel_axis >= x.rank() {
            return Err(OperatorError::Axis { axis: self.channel_axis as i64, rank: x.rank() });
        }
        let (_, channels, inner) = around_axis(x.shape(), self.channel_axis);
        if scale.len() != channels || shift.len() != channels {
            return Err(OperatorError::Shapes {
                left: vec![channels],
                right: vec![scale.len(), shift.len()],
            });
        }
        let apply =
            |value: f32| self.activation.map_or(value, |activation| activation.apply(value));
        let elements = x.elements::<f32>()?.iter().enumerate().map(|(index, &element)| {
            let channel = index / inner % channels;
            apply(element * scale[channel] + shift[channel])
        });
        Ok(vec![Tensor::from_vec(x.shape().to_vec(), elements.collect())?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let x = inputs.fact(0);
        Ok(vec![x.map_or_else(Fact::unknown, |x| Fact { constant: None, ..x.clone() })])
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let channel_axis = permutation.iter().position(|&axis| axis == self.channel_axis)?;
        Some(Arc::new(ScaleShift { channel_axis, activation: self.activation }))
    }
}
