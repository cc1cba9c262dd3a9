//! Selections: picking positions along every axis of a tensor, the one motion most layout operators are made of.

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::tensor::{Tensor, TensorData, checked_count, strides};

/// The tensor of the given shape whose place `i` along `axis` holds position `position(axis, i)` of the given one.
pub(in crate::operators) fn select(
    tensor: &Tensor,
    shape: Vec<usize>,
    position: impl Fn(usize, usize) -> usize,
) -> Result<Tensor, OperatorError> {
    // Dimensions beside a zero may be of any size, so nothing may be walked before this is known.
    if checked_count(&shape, tensor.data_type())? == 0 {
        return tensor.gathered(shape, &[]);
    }
    let mut offsets = vec![0];
    for (axis, step) in strides(tensor.shape()).into_iter().enumerate() {
        let along = (0..shape[axis]).map(|index| {
            check(position(axis, index), tensor.shape()[axis]).map(|position| position * step)
        });
        let along = along.collect::<Result<Vec<usize>, _>>()?;
        offsets = offsets
            .iter()
            .flat_map(|&offset| along.iter().map(move |&further| offset + further))
            .collect();
    }
    tensor.gathered(shape, &offsets)
}

/// Like [`select`], with the only element of `fill` wherever the position along any axis is `None`.
pub(in crate::operators) fn select_or_fill(
    tensor: &Tensor,
    shape: Vec<usize>,
    position: impl Fn(usize, usize) -> Option<usize>,
    fill: &Tensor,
) -> Result<Tensor, OperatorError> {
    if checked_count(&shape, tensor.data_type())? == 0 {
        return tensor.gathered(shape, &[]);
    }
    let mut offsets = vec![Some(0usize)];
    for (axis, step) in strides(tensor.shape()).into_iter().enumerate() {
        let along = (0..shape[axis]).map(|index| match position(axis, index) {
            None => Ok(None),
            Some(position) => Ok(Some(check(position, tensor.shape()[axis])?.saturating_mul(step))),
        });
        let along = along.collect::<Result<Vec<Option<usize>>, OperatorError>>()?;
        offsets = offsets
            .iter()
            .flat_map(|&offset| along.iter().map(move |&further| offset?.checked_add(further?)))
            .collect();
    }
    let filler = tensor.len();
    let offsets: Vec<usize> = offsets.into_iter().map(|offset| offset.unwrap_or(filler)).collect();
    let fill = Tensor::new(vec![1], fill.data().clone())?;
    Tensor::chained(&[tensor, &fill])?.gathered(shape, &offsets)
}

/// One position of an axis, without that axis.
pub(in crate::operators) fn position_of(
    tensor: &Tensor,
    axis: usize,
    index: usize,
) -> Result<Tensor, OperatorError> {
    let mut shape = tensor.shape().to_vec();
    shape[axis] = 1;
    let position = |along, place| if along == axis { index } else { place };
    let slice = select(tensor, shape.clone(), position)?;
    shape.remove(axis);
    slice.reshaped(shape)
}

fn check(position: usize, dimension: usize) -> Result<usize, OperatorError> {
    if position < dimension {
        return Ok(position);
    }
    Err(OperatorError::Invalid(format!(
        "position {position} is outside a dimension of {dimension}"
    )))
}

/// A scalar zero of any type: false for bool, the empty string for strings.
pub(in crate::operators) fn zero(data_type: DataType) -> Tensor {
    macro_rules! zeros {
        ($($variant:ident),*) => {
            match data_type {
                $(DataType::$variant => TensorData::$variant(vec![Default::default()].into()),)*
                narrow => TensorData::Narrow(narrow, vec![0].into()),
            }
        };
    }
    let data = zeros!(
        F32, F64, F16, BF16, I8, I16, I32, I64, U8, U16, U32, U64, Bool, String, Complex64,
        Complex128
    );
    Tensor::new(Vec::new(), data).expect("one element fits rank 0")
}
