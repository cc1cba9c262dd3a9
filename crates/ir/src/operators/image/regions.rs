//! What operators on regions of feature maps check of their inputs.

use crate::error::OperatorError;
use crate::tensor::Tensor;

/// The dimensions of feature maps `[N, C, H, W]`.
pub(super) fn feature_maps(x: &Tensor) -> Result<[usize; 4], OperatorError> {
    <[usize; 4]>::try_from(x.shape())
        .map_err(|_| OperatorError::Invalid(format!("feature maps of shape {:?}", x.shape())))
}

/// The image that a region is of.
pub(super) fn batch_index(image: i64, batch: usize) -> Result<usize, OperatorError> {
    usize::try_from(image)
        .ok()
        .filter(|&image| image < batch)
        .ok_or_else(|| OperatorError::Invalid(format!("image {image} of a batch of {batch}")))
}

/// Height and width of the output, from attributes.
pub(super) fn output_size(name: &str, sizes: &[i64]) -> Result<[usize; 2], OperatorError> {
    let size = |size: i64| usize::try_from(size).ok().filter(|size| (1..1 << 20).contains(size));
    match sizes {
        &[height, width] => size(height).zip(size(width)).map(|(height, width)| [height, width]),
        _ => None,
    }
    .ok_or_else(|| OperatorError::Attribute {
        name: name.into(),
        problem: format!("{sizes:?} is no height and width"),
    })
}
