//! MaxUnpool: pooled maxima put back where they came from, among zeros.

use std::sync::Arc;

use super::window::{MAX_SIZE, Padding, entry, sizes};
use crate::broadcast::strided_indices;
use crate::error::OperatorError;
use crate::operator::{Inputs, NodeSource, Operator};
use crate::operators::linear::scalar::{Scalar, in_scalars};
use crate::tensor::{Tensor, checked_count, strides};
use crate::value::Value;

#[derive(Clone, Debug)]
struct MaxUnpool {
    kernel: Vec<usize>,
    strides: Vec<usize>,
    padding: Padding,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let kernel = sizes(attributes, "kernel_shape", 1)?.ok_or_else(|| OperatorError::Attribute {
        name: "kernel_shape".into(),
        problem: "is missing".into(),
    })?;
    let strides = sizes(attributes, "strides", 1)?.unwrap_or_default();
    Ok(Arc::new(MaxUnpool { kernel, strides, padding: Padding::from_attributes(attributes)? }))
}

impl MaxUnpool {
    /// The shape that was pooled, as far as pooling lets it be known.
    fn pooled_shape(&self, shape: &[usize]) -> Result<Vec<usize>, OperatorError> {
        let misfit = || {
            OperatorError::Invalid(format!("cannot unpool {shape:?} with kernel {:?}", self.kernel))
        };
        if shape.len() != self.kernel.len() + 2 {
            return Err(misfit());
        }
        let mut pooled = shape.to_vec();
        let rank = self.kernel.len();
        for (axis, size) in pooled[2..].iter_mut().enumerate() {
            let pads = match &self.padding {
                Padding::Explicit { begin, end } => {
                    entry(begin, axis, rank, 0)? + entry(end, axis, rank, 0)?
                }
                _ => 0,
            };
            let last = size.checked_sub(1).filter(|&last| last < MAX_SIZE).ok_or_else(misfit)?;
            let full = last * entry(&self.strides, axis, rank, 1)? + self.kernel[axis];
            *size = full.checked_sub(pads).ok_or_else(misfit)?;
        }
        Ok(pooled)
    }

    fn unpool<T: Scalar>(
        &self,
        x: &Tensor,
        indices: &[i64],
        shape: Option<Vec<usize>>,
    ) -> Result<Tensor, OperatorError> {
        let pooled = self.pooled_shape(x.shape())?;
        let elements = T::read(x)?;
        let mut y = vec![T::default(); checked_count(&pooled, x.data_type())?];
        for (&element, &index) in elements.iter().zip(indices) {
            let place = usize::try_from(index).ok().and_then(|index| y.get_mut(index));
            *place.ok_or_else(|| {
                OperatorError::Invalid(format!("index {index} is outside of shape {pooled:?}"))
            })? = element;
        }
        let Some(shape) = shape.filter(|shape| *shape != pooled) else {
            return T::write(pooled, x.data_type(), y);
        };
        // Indices are within the shape that was pooled, which stands in the first corner of a larger one.
        if shape.len() != pooled.len() || shape.iter().zip(&pooled).any(|(to, from)| to < from) {
            return Err(OperatorError::Shapes { left: pooled, right: shape });
        }
        let mut larger = vec![T::default(); checked_count(&shape, x.data_type())?];
        for (place, element) in strided_indices(&pooled, &strides(&shape), 0).into_iter().zip(y) {
            larger[place] = element;
        }
        T::write(shape, x.data_type(), larger)
    }
}

impl Operator for MaxUnpool {
    fn name(&self) -> &'static str {
        "MaxUnpool"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (x, indices) = (inputs.tensor(0)?, inputs.tensor(1)?);
        if x.shape() != indices.shape() {
            return Err(OperatorError::Shapes {
                left: x.shape().to_vec(),
                right: indices.shape().to_vec(),
            });
        }
        let shape = match inputs.optional_tensor(2)? {
            None => None,
            Some(shape) => {
                let shape = shape.to_i64s()?;
                let sizes: Option<_> =
                    shape.iter().map(|&size| usize::try_from(size).ok()).collect();
                Some(sizes.ok_or_else(|| OperatorError::Invalid(format!("a shape of {shape:?}")))?)
            }
        };
        let indices = indices.to_i64s()?;
        let y = in_scalars!(x.data_type(), T => self.unpool::<T>(x, &indices, shape))?;
        Ok(vec![y.into()])
    }
}
