//! Taking the zero points off the factors of a product.

use crate::broadcast::{broadcast_indices, broadcast_shapes};
use crate::error::OperatorError;
use crate::tensor::Tensor;

use super::number;

/// For each element of shape `to`, the one of a parameter (a scale or a zero point) that belongs to it:
/// a single one, one per index of `axis`, or one per element of a shape that broadcasts.
pub(super) fn spread(
    parameter: &Tensor,
    to: &[usize],
    axis: usize,
) -> Result<Vec<f64>, OperatorError> {
    let numbers = number::read_any(parameter)?;
    let count = crate::tensor::checked_count(to, crate::data_type::DataType::F64)?;
    if let [number] = numbers[..] {
        return Ok(vec![number; count]);
    }
    let mut shape = parameter.shape().to_vec();
    if shape.len() == 1 {
        shape.resize(to.len().saturating_sub(axis).max(1), 1);
    }
    if broadcast_shapes(&[&shape, to])? != to {
        return Err(OperatorError::Shapes { left: parameter.shape().to_vec(), right: to.to_vec() });
    }
    Ok(broadcast_indices(&shape, to).into_iter().map(|index| numbers[index]).collect())
}

/// The numbers of a tensor less their zero points.
pub(super) fn centred(
    tensor: &Tensor,
    zeros: Option<&Tensor>,
    axis: usize,
) -> Result<Vec<f64>, OperatorError> {
    let mut numbers = number::read(tensor)?;
    if let Some(zeros) = zeros {
        if zeros.data_type() != tensor.data_type() {
            return Err(OperatorError::WrongType {
                expected: tensor.data_type().to_string(),
                given: zeros.data_type(),
            });
        }
        let zeros = spread(zeros, tensor.shape(), axis)?;
        numbers.iter_mut().zip(zeros).for_each(|(number, zero)| *number -= zero);
    }
    Ok(numbers)
}

/// The numbers of an 8-bit integer tensor less their zero points, as what integer products are summed in.
pub(super) fn centred_integers(
    tensor: &Tensor,
    zeros: Option<&Tensor>,
    axis: usize,
) -> Result<Vec<i32>, OperatorError> {
    use crate::data_type::DataType::{I8, U8};
    match tensor.data_type() {
        I8 | U8 => Ok(centred(tensor, zeros, axis)?.into_iter().map(|e| e as i32).collect()),
        given => Err(OperatorError::WrongType { expected: "int8 or uint8".into(), given }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_spread_over_rows_or_columns() {
        let given = Tensor::vector(vec![1u8, 2]);
        assert_eq!(spread(&given, &[2, 2], 0).unwrap(), [1.0, 1.0, 2.0, 2.0]);
        assert_eq!(spread(&given, &[2, 2], 1).unwrap(), [1.0, 2.0, 1.0, 2.0]);
        let stack = given.reshaped(vec![2, 1, 1]).unwrap();
        assert_eq!(spread(&stack, &[2, 1, 2], 1).unwrap(), [1.0, 1.0, 2.0, 2.0]);
        assert!(spread(&given, &[3, 2], 0).is_err());
        assert!(spread(&stack, &[2, 2], 0).is_err());
    }
}
