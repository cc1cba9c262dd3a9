//! MatMul: the product of matrices, or of stacks of matrices that broadcast, as NumPy's `matmul` does it.

use std::sync::Arc;

use super::product::accumulate_product;
use super::scalar::{Scalar, in_scalars, same_type};
use crate::broadcast::{broadcast_dimensions, broadcast_indices, broadcast_shapes};
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// The product over the last axis of the left input and the last but one of the right; axes before them broadcast.
/// An input of rank 1 is a row on the left and a column on the right, and its axis is absent from the output.
#[derive(Clone, Debug)]
pub struct MatMul;

pub(super) fn build(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(MatMul))
}

/// A stack of matrices: the dimensions of the stack, the rows and the columns.
type Stack<T> = (Vec<T>, T, T);

fn as_left<T: Copy>(shape: &[T], one: T) -> Option<Stack<T>> {
    match shape {
        [] => None,
        [columns] => Some((Vec::new(), one, *columns)),
        [stack @ .., rows, columns] => Some((stack.to_vec(), *rows, *columns)),
    }
}

fn as_right<T: Copy>(shape: &[T], one: T) -> Option<Stack<T>> {
    match shape {
        [rows] => Some((Vec::new(), *rows, one)),
        _ => as_left(shape, one),
    }
}

fn output_shape<T: Copy>(stack: Vec<T>, left: (usize, T), right: (usize, T)) -> Vec<T> {
    let mut shape = stack;
    shape.extend((left.0 > 1).then_some(left.1));
    shape.extend((right.0 > 1).then_some(right.1));
    shape
}

/// The product of stacks of matrices, as [`MatMul`] means it.
pub(crate) fn product_of_stacks<T: Scalar>(
    left: &[T],
    left_shape: &[usize],
    right: &[T],
    right_shape: &[usize],
    data_type: DataType,
) -> Result<(Vec<usize>, Vec<T>), OperatorError> {
    let misfit =
        || OperatorError::Shapes { left: left_shape.to_vec(), right: right_shape.to_vec() };
    let (left_stack, rows, depth) = as_left(left_shape, 1).ok_or_else(misfit)?;
    let (right_stack, right_depth, columns) = as_right(right_shape, 1).ok_or_else(misfit)?;
    if depth != right_depth {
        return Err(misfit());
    }
    let stack = broadcast_shapes(&[&left_stack, &right_stack]).map_err(|_| misfit())?;
    let shape = output_shape(stack.clone(), (left_shape.len(), rows), (right_shape.len(), columns));
    let mut sums = vec![T::default(); checked_count(&shape, data_type)?];
    if sums.is_empty() || depth == 0 {
        return Ok((shape, sums));
    }
    let lefts = broadcast_indices(&left_stack, &stack);
    let rights = broadcast_indices(&right_stack, &stack);
    let pairs = lefts.into_iter().zip(rights);
    for (sums, (l, r)) in sums.chunks_exact_mut(rows * columns).zip(pairs) {
        let left = &left[l * rows * depth..][..rows * depth];
        let right = &right[r * depth * columns..][..depth * columns];
        accumulate_product(left, right, sums, depth, columns);
    }
    Ok((shape, sums))
}

impl Operator for MatMul {
    fn name(&self) -> &'static str {
        "MatMul"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (left, right) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let data_type = same_type(&[left, right])?;
        let product: Result<Tensor, OperatorError> = in_scalars!(data_type, T => {
            let (left_elements, right_elements) = (T::read(left)?, T::read(right)?);
            let (shape, sums) = product_of_stacks(
                &left_elements,
                left.shape(),
                &right_elements,
                right.shape(),
                data_type,
            )?;
            T::write(shape, data_type, sums)
        });
        Ok(vec![product?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let data_type = inputs.data_type(0).or(inputs.data_type(1));
        let (Some(left), Some(right)) = (inputs.dimensions(0), inputs.dimensions(1)) else {
            return Ok(vec![Fact::partial(data_type, None)]);
        };
        let scalar = || OperatorError::Invalid("a product with a scalar".into());
        let (left_stack, rows, depth) = as_left(left, Some(1)).ok_or_else(scalar)?;
        let (right_stack, right_depth, columns) = as_right(right, Some(1)).ok_or_else(scalar)?;
        if let (Some(left), Some(right)) = (depth, right_depth)
            && left != right
        {
            return Err(OperatorError::Shapes { left: vec![left], right: vec![right] });
        }
        let stack = broadcast_dimensions(&left_stack, &right_stack)?;
        let dimensions = output_shape(stack, (left.len(), rows), (right.len(), columns));
        Ok(vec![Fact::partial(data_type, Some(dimensions))])
    }

    fn flops(&self, inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        let depth = inputs.dimensions(0).and_then(|left| left.last().copied().flatten());
        let count = outputs.first().and_then(Fact::element_count);
        (count.unwrap_or(0) as u64).saturating_mul(depth.unwrap_or(0) as u64).saturating_mul(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(left: &[usize], right: &[usize]) -> Result<Vec<usize>, OperatorError> {
        let tensor =
            |shape: &[usize]| Some(Value::from(Tensor::filled(shape.to_vec(), 1i32).unwrap()));
        let values = [tensor(left), tensor(right)];
        let made = MatMul.evaluate(&Inputs::new(&values, 1))?.remove(0).into_tensor()?;
        let facts = [Fact::new(DataType::I32, left), Fact::new(DataType::I32, right)];
        let facts = [Some(&facts[0]), Some(&facts[1])];
        let inferred = MatMul.infer(&InputFacts::new(&facts, 1))?.remove(0);
        assert_eq!(inferred.shape().as_deref(), Some(made.shape()));
        Ok(made.shape().to_vec())
    }

    #[test]
    fn shapes_follow_numpy_and_misfits_are_refused() {
        type Case<'a> = (&'a [usize], &'a [usize], Option<&'a [usize]>);
        let cases: [Case<'_>; 10] = [
            (&[3], &[3], Some(&[])),
            (&[3], &[2, 3, 4], Some(&[2, 4])),
            (&[2, 4, 3], &[3], Some(&[2, 4])),
            (&[5, 1, 2, 3], &[4, 3, 1], Some(&[5, 4, 2, 1])),
            (&[2, 0], &[0, 3], Some(&[2, 3])),
            (&[0, 2, 3], &[3, 1], Some(&[0, 2, 1])),
            (&[], &[3], None),
            (&[3], &[], None),
            (&[2, 3], &[2, 3], None),
            (&[2, 1, 3], &[3, 3, 1], None),
        ];
        for (left, right, expected) in cases {
            assert_eq!(product(left, right).ok().as_deref(), expected, "{left:?} {right:?}");
        }
    }
}
