//! Normalisation over trailing axes: parameters that broadcast to them, and what shape statistics have.

use crate::broadcast::{broadcast_indices, broadcast_shapes};
use crate::error::OperatorError;
use crate::tensor::Tensor;

/// A scale or bias, found for each element of what is normalised.
pub(super) struct TrailingParameter {
    elements: Vec<f64>,
    /// Where each element's parameter lies; repeats along the input.
    indices: Vec<usize>,
}

impl TrailingParameter {
    /// A parameter for an input of `shape` normalised over `axis` and later axes, to which it must broadcast.
    pub(super) fn new(
        parameter: &Tensor,
        shape: &[usize],
        axis: usize,
    ) -> Result<Self, OperatorError> {
        // A parameter is nearly always of the trailing shape, whose indices are far fewer.
        let target = if parameter.rank() <= shape.len() - axis { &shape[axis..] } else { shape };
        if broadcast_shapes(&[parameter.shape(), target])? != target {
            return Err(OperatorError::Shapes {
                left: parameter.shape().to_vec(),
                right: target.to_vec(),
            });
        }
        let indices = broadcast_indices(parameter.shape(), target);
        Ok(Self { elements: parameter.to_f64s()?, indices })
    }

    /// The parameter for one element of the input.
    pub(super) fn at(&self, index: usize) -> f64 {
        self.elements[self.indices[index % self.indices.len()]]
    }
}

/// The shape with `axis` and later axes reduced to 1.
pub(super) fn reduced_shape(shape: &[usize], axis: usize) -> Vec<usize> {
    shape.iter().enumerate().map(|(i, &size)| if i < axis { size } else { 1 }).collect()
}

/// The dimensions with `axis` and later axes reduced to 1.
pub(super) fn reduced_dimensions(dimensions: &[Option<usize>], axis: usize) -> Vec<Option<usize>> {
    dimensions.iter().enumerate().map(|(i, &size)| if i < axis { size } else { Some(1) }).collect()
}
