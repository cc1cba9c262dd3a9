//! The bias that attention adds to its scores: a mask, causality and padding.

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::tensor::{Tensor, TensorData};

/// A mask as a bias, broadcast to `[batch, heads, queries, keys]`.
pub(super) struct Mask {
    elements: Vec<f64>,
    shape: [usize; 4],
    /// Whether one key's bias serves all keys.
    repeats: bool,
}

impl Mask {
    /// A boolean mask hides where it is false; any other is added to the scores. Keys past the end of a shorter mask
    /// are hidden where `pads` allows a shorter one.
    pub(super) fn read(
        tensor: &Tensor,
        target: [usize; 4],
        pads: bool,
    ) -> Result<Self, OperatorError> {
        let refuse =
            || OperatorError::Shapes { left: tensor.shape().to_vec(), right: target.to_vec() };
        let offset = target.len().checked_sub(tensor.rank()).ok_or_else(refuse)?;
        let mut shape = [1; 4];
        shape[offset..].copy_from_slice(tensor.shape());
        if (0..3).any(|axis| shape[axis] != 1 && shape[axis] != target[axis]) {
            return Err(refuse());
        }
        let shorter = shape[3] < target[3];
        let repeats = shorter && shape[3] == 1 && !pads;
        if shape[3] > target[3] || (shorter && !repeats && !pads) {
            return Err(refuse());
        }
        let elements = match tensor.data() {
            TensorData::Bool(seen) => {
                seen.iter().map(|&seen| if seen { 0.0 } else { f64::NEG_INFINITY }).collect()
            }
            _ if tensor.data_type().is_integer() => {
                tensor.to_i64s()?.iter().map(|&bias| bias as f64).collect()
            }
            _ => tensor.to_f64s()?,
        };
        Ok(Self { elements, shape, repeats })
    }

    /// Adds the bias of one query to its scores.
    pub(super) fn add(&self, batch: usize, head: usize, query: usize, scores: &mut [f64]) {
        let at = |axis: usize, index: usize| if self.shape[axis] == 1 { 0 } else { index };
        let row = (at(0, batch) * self.shape[1] + at(1, head)) * self.shape[2] + at(2, query);
        let biases = &self.elements[row * self.shape[3]..][..self.shape[3]];
        for (key, score) in scores.iter_mut().enumerate() {
            let key = if self.repeats { 0 } else { key };
            *score += biases.get(key).copied().unwrap_or(f64::NEG_INFINITY);
        }
    }
}

/// The type that a node's `softmax_precision` names, where it does; it must be a float.
pub(super) fn softmax_precision(
    attributes: &crate::attribute::Attributes,
) -> Result<Option<DataType>, OperatorError> {
    let Some(code) = attributes.int("softmax_precision")? else { return Ok(None) };
    match DataType::from_onnx(code) {
        Some(given) if given.is_float() && !given.is_narrow() => Ok(Some(given)),
        _ => Err(OperatorError::Attribute {
            name: "softmax_precision".into(),
            problem: format!("{code} is not a float"),
        }),
    }
}
