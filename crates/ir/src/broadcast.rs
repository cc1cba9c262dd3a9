//! Broadcasting: shapes of different sizes walked together, as NumPy does it.

use crate::error::OperatorError;
use crate::tensor::strides;

/// The shape that all of `shapes` broadcast to.
pub fn broadcast_shapes(shapes: &[&[usize]]) -> Result<Vec<usize>, OperatorError> {
    let mut result: Vec<usize> = Vec::new();
    for shape in shapes {
        result = broadcast_pair(&result, shape)?;
    }
    Ok(result)
}

fn broadcast_pair(left: &[usize], right: &[usize]) -> Result<Vec<usize>, OperatorError> {
    let rank = left.len().max(right.len());
    let aligned = |shape: &[usize], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis])
    };
    (0..rank)
        .map(|axis| match (aligned(left, axis), aligned(right, axis)) {
            (a, b) if a == b => Ok(a),
            (1, b) => Ok(b),
            (a, 1) => Ok(a),
            _ => Err(OperatorError::Shapes { left: left.to_vec(), right: right.to_vec() }),
        })
        .collect()
}

/// The dimensions that partly known shapes broadcast to; a clash of known dimensions is an error.
pub fn broadcast_dimensions(
    left: &[Option<usize>],
    right: &[Option<usize>],
) -> Result<Vec<Option<usize>>, OperatorError> {
    let rank = left.len().max(right.len());
    let aligned = |shape: &[Option<usize>], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(Some(1), |axis| shape[axis])
    };
    (0..rank)
        .map(|axis| match (aligned(left, axis), aligned(right, axis)) {
            (Some(a), Some(b)) if a == b => Ok(Some(a)),
            (Some(1), other) | (other, Some(1)) => Ok(other),
            (Some(a), Some(b)) => Err(OperatorError::Shapes { left: vec![a], right: vec![b] }),
            // An unknown dimension beside a known one other than 1 must equal it or be 1.
            (Some(a), None) | (None, Some(a)) => Ok(Some(a)),
            (None, None) => Ok(None),
        })
        .collect()
}

/// For each element of a tensor of shape `to`, where the element it comes from lies in one of shape `from`,
/// which must broadcast to `to`.
pub fn broadcast_indices(from: &[usize], to: &[usize]) -> Vec<usize> {
    let offset = to.len() - from.len();
    let from_strides = strides(from);
    let steps: Vec<usize> = (0..to.len())
        .map(|axis| match axis.checked_sub(offset) {
            Some(axis) if from[axis] != 1 => from_strides[axis],
            _ => 0,
        })
        .collect();
    strided_indices(to, &steps, 0)
}

/// The offsets `start + sum(index[axis] * steps[axis])` for every index of `shape` in row-major order.
pub fn strided_indices(shape: &[usize], steps: &[usize], start: usize) -> Vec<usize> {
    let mut offsets = vec![start];
    if shape.contains(&0) {
        return Vec::new();
    }
    for (&size, &step) in shape.iter().zip(steps) {
        let mut next = Vec::with_capacity(offsets.len() * size);
        for &offset in &offsets {
            next.extend((0..size).map(|index| offset + index * step));
        }
        offsets = next;
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast_as_in_numpy() {
        let cases = [
            ([&[2, 3][..], &[3]], Some(vec![2, 3])),
            ([&[2, 1], &[1, 3]], Some(vec![2, 3])),
            ([&[], &[4]], Some(vec![4])),
            ([&[0], &[1]], Some(vec![0])),
            ([&[2], &[3]], None),
        ];
        for (shapes, expected) in cases {
            assert_eq!(broadcast_shapes(&shapes).ok(), expected);
        }
    }

    #[test]
    fn indices_repeat_along_broadcast_axes() {
        assert_eq!(broadcast_indices(&[2, 1], &[2, 3]), [0, 0, 0, 1, 1, 1]);
        assert_eq!(broadcast_indices(&[3], &[2, 3]), [0, 1, 2, 0, 1, 2]);
        assert_eq!(broadcast_indices(&[], &[2]), [0, 0]);
        assert!(broadcast_indices(&[1], &[0]).is_empty());
    }
}
