//! Rows of tensors: the entries of a batch.

use std::ops::Range;

use weft_ir::operators::layout::concat;
use weft_ir::{OperatorError, Tensor, TensorData, with_elements};

/// Some of a tensor's rows.
pub(crate) fn rows(tensor: &Tensor, rows: Range<usize>) -> Result<Tensor, OperatorError> {
    let Some((&count, rest)) = tensor.shape().split_first() else {
        return Err(OperatorError::Axis { axis: 0, rank: 0 });
    };
    if rows == (0..count) {
        return Ok(tensor.clone());
    }
    if rows.start > rows.end || rows.end > count {
        let shape = tensor.shape();
        return Err(OperatorError::Invalid(format!("shape {shape:?} has no rows {rows:?}")));
    }
    let row: usize = rest.iter().product();
    let mut shape = tensor.shape().to_vec();
    shape[0] = rows.len();
    let range = rows.start * row..rows.end * row;
    match tensor.data() {
        TensorData::Narrow(data_type, codes) => {
            Tensor::new(shape, TensorData::Narrow(*data_type, codes[range].to_vec().into()))
        }
        _ => with_elements!(tensor, elements => Tensor::from_vec(shape, elements[range].to_vec())),
    }
}

/// Some of a tensor's rows, and the last of them again until there are `count`: what is computed of it is of no use,
/// but is no special case either.
pub(crate) fn padded_rows(
    tensor: &Tensor,
    wanted: Range<usize>,
    count: usize,
) -> Result<Tensor, OperatorError> {
    let padding = count.saturating_sub(wanted.len());
    let last = rows(tensor, wanted.end.saturating_sub(1)..wanted.end)?;
    let kept = rows(tensor, wanted)?;
    let mut all = vec![&kept];
    all.extend(std::iter::repeat_n(&last, padding));
    joined(&all)
}

/// Tensors one below the other.
pub(crate) fn joined(tensors: &[&Tensor]) -> Result<Tensor, OperatorError> {
    match tensors {
        [only] => Ok((*only).clone()),
        several => concat(several, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor() -> Tensor {
        Tensor::from_vec(vec![3, 2], vec![1i64, 2, 3, 4, 5, 6]).unwrap()
    }

    #[test]
    fn rows_are_cut_out() {
        let middle = rows(&tensor(), 1..2).unwrap();
        assert_eq!((middle.shape(), middle.elements::<i64>().unwrap()), (&[1, 2][..], &[3, 4][..]));
        assert_eq!(rows(&tensor(), 0..3).unwrap(), tensor());
        assert!(rows(&Tensor::scalar(1i64), 0..1).is_err());
        assert!(rows(&tensor(), 2..4).is_err());
    }

    #[test]
    fn the_last_row_is_repeated() {
        let padded = padded_rows(&tensor(), 1..3, 4).unwrap();
        assert_eq!(padded.shape(), [4, 2]);
        assert_eq!(padded.elements::<i64>().unwrap(), [3, 4, 5, 6, 5, 6, 5, 6]);
        assert_eq!(padded_rows(&tensor(), 0..3, 3).unwrap(), tensor());
    }

    #[test]
    fn narrow_types_stay_what_they_are() {
        let codes = TensorData::Narrow(weft_ir::DataType::U4, vec![1, 2, 3].into());
        let tensor = Tensor::new(vec![3], codes).unwrap();
        assert_eq!(rows(&tensor, 0..2).unwrap().data_type(), weft_ir::DataType::U4);
    }
}
