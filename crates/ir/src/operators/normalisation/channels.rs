//! The channel axis of normalisations, and the parameters that come one per channel.

use crate::error::OperatorError;
use crate::tensor::Tensor;

/// The number of channels, after checking that each parameter has one element per channel.
pub(super) fn check_parameters(
    shape: &[usize],
    channel_axis: usize,
    parameters: &[Result<&Tensor, OperatorError>],
) -> Result<usize, OperatorError> {
    let &channels = shape
        .get(channel_axis)
        .ok_or(OperatorError::Axis { axis: channel_axis as i64, rank: shape.len() })?;
    for parameter in parameters {
        let given = parameter.clone()?.shape();
        if given != [channels] {
            return Err(OperatorError::Shapes { left: shape.to_vec(), right: given.to_vec() });
        }
    }
    Ok(channels)
}

/// Where an axis stands after a permutation.
pub(super) fn permuted_axis(permutation: &[usize], axis: usize) -> Option<usize> {
    permutation.iter().position(|&old| old == axis)
}
