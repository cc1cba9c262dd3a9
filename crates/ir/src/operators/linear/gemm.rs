//! Gemm: the scaled product of two matrices plus a scaled bias.

use std::sync::Arc;

use super::product::{accumulate_product, transposed};
use super::scalar::{Scalar, in_scalars, same_type};
use crate::broadcast::{broadcast_indices, broadcast_shapes};
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// `alpha * left * right + beta * bias`, the matrices transposed where asked; the bias broadcasts to the product.
#[derive(Clone, Debug)]
pub struct Gemm {
    /// The product's factor.
    pub alpha: f32,
    /// The bias's factor.
    pub beta: f32,
    /// The left matrix is given as its transpose.
    pub transpose_left: bool,
    /// The right matrix is given as its transpose.
    pub transpose_right: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    Ok(Arc::new(Gemm {
        alpha: attributes.float_or("alpha", 1.0)?,
        beta: attributes.float_or("beta", 1.0)?,
        transpose_left: attributes.int_or("transA", 0)? != 0,
        transpose_right: attributes.int_or("transB", 0)? != 0,
    }))
}

fn turned<T: Copy>(shape: &[T], transpose: bool) -> Result<[T; 2], OperatorError> {
    match shape {
        &[rows, columns] => Ok(if transpose { [columns, rows] } else { [rows, columns] }),
        _ => Err(OperatorError::Invalid(format!("a matrix of rank {}", shape.len()))),
    }
}

impl Gemm {
    fn product<T: Scalar>(
        &self,
        inputs: &Inputs<'_>,
        data_type: DataType,
    ) -> Result<Tensor, OperatorError> {
        let (left, right) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let [rows, depth] = turned(left.shape(), self.transpose_left)?;
        let [right_depth, columns] = turned(right.shape(), self.transpose_right)?;
        if depth != right_depth {
            return Err(OperatorError::Shapes {
                left: left.shape().to_vec(),
                right: right.shape().to_vec(),
            });
        }
        let shape = vec![rows, columns];
        let mut sums = vec![T::default(); checked_count(&shape, data_type)?];
        let (mut left, mut right) = (T::read(left)?, T::read(right)?);
        if self.transpose_left {
            left = transposed(&left, depth, rows).into();
        }
        if self.transpose_right {
            right = transposed(&right, columns, depth).into();
        }
        accumulate_product(&left, &right, &mut sums, depth, columns);
        for sum in &mut sums {
            *sum = sum.scaled(self.alpha);
        }
        if let Some(bias) = inputs.optional_tensor(2)? {
            if broadcast_shapes(&[bias.shape(), &shape])? != shape {
                return Err(OperatorError::Shapes { left: bias.shape().to_vec(), right: shape });
            }
            let elements = T::read(bias)?;
            let indices = broadcast_indices(bias.shape(), &shape);
            for (sum, index) in sums.iter_mut().zip(indices) {
                *sum = sum.multiply_add(T::ONE, elements[index].scaled(self.beta));
            }
        }
        T::write(shape, data_type, sums)
    }
}

impl Operator for Gemm {
    fn name(&self) -> &'static str {
        "Gemm"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let mut tensors = vec![inputs.tensor(0)?, inputs.tensor(1)?];
        tensors.extend(inputs.optional_tensor(2)?);
        let data_type = same_type(&tensors)?;
        let product = in_scalars!(data_type, T => self.product::<T>(inputs, data_type))?;
        Ok(vec![product.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let unknown = [None, None];
        let left = inputs.dimensions(0).unwrap_or(&unknown);
        let right = inputs.dimensions(1).unwrap_or(&unknown);
        let [rows, _] = turned(left, self.transpose_left)?;
        let [_, columns] = turned(right, self.transpose_right)?;
        let data_type = inputs.data_type(0).or(inputs.data_type(1));
        Ok(vec![Fact::partial(data_type, Some(vec![rows, columns]))])
    }

    fn flops(&self, inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        let depth = inputs
            .dimensions(0)
            .and_then(|left| turned(left, self.transpose_left).ok())
            .and_then(|[_, depth]| depth);
        let count = outputs.first().and_then(Fact::element_count);
        (count.unwrap_or(0) as u64).saturating_mul(depth.unwrap_or(0) as u64).saturating_mul(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_and_misfits_are_refused() {
        let gemm = Gemm { alpha: 1.0, beta: 1.0, transpose_left: true, transpose_right: false };
        let tensor = |shape: &[usize], element: i32| {
            Some(Value::from(Tensor::filled(shape.to_vec(), element).unwrap()))
        };
        let run = |values: &[Option<Value>]| gemm.evaluate(&Inputs::new(values, 1));
        let made = run(&[tensor(&[2, 1], i32::MAX), tensor(&[2, 2], 1), tensor(&[], 3)]).unwrap();
        assert_eq!(made[0].tensor().unwrap().elements::<i32>().unwrap(), &[1, 1]);
        for bad in [
            [tensor(&[1, 2], 1), tensor(&[2, 2], 1), None],
            [tensor(&[2, 1], 1), tensor(&[2], 1), None],
            [tensor(&[2, 1], 1), tensor(&[2, 2], 1), tensor(&[3, 2], 1)],
            [tensor(&[2, 1], 1), None, None],
        ] {
            assert!(run(&bad).is_err());
        }
    }
}
