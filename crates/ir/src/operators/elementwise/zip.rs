//! Walks two tensors' elements together, broadcasting, in plain loops that the compiler can vectorise.

use crate::broadcast::{broadcast_shapes, strided_indices};
use crate::error::OperatorError;
use crate::tensor::{Element, checked_count, strides};

/// Elements and their shape.
pub(crate) type Shaped<'a, T> = (&'a [usize], &'a [T]);

/// The shape that both broadcast to, and `function` of every pair of elements in it.
pub(crate) fn zip_broadcast<A: Clone, B: Clone, R: Element>(
    left: Shaped<'_, A>,
    right: Shaped<'_, B>,
    function: impl Fn(A, B) -> R,
) -> Result<(Vec<usize>, Vec<R>), OperatorError> {
    let shape = broadcast_shapes(&[left.0, right.0])?;
    let count = checked_count(&shape, R::DATA_TYPE)?;
    let mut result = Vec::with_capacity(count);
    if count == 0 {
        return Ok((shape, result));
    }
    let run = Run::of(&shape, left.0, right.0);
    for (start_left, start_right) in run.starts(&shape, left.0, right.0) {
        let left = &left.1[start_left..];
        let right = &right.1[start_right..];
        match (run.moves_left, run.moves_right) {
            (true, true) => result.extend(
                left[..run.length]
                    .iter()
                    .zip(&right[..run.length])
                    .map(|(left, right)| function(left.clone(), right.clone())),
            ),
            (true, false) => {
                let right = &right[0];
                let run = left[..run.length].iter();
                result.extend(run.map(|left| function(left.clone(), right.clone())));
            }
            (false, true) => {
                let left = &left[0];
                let run = right[..run.length].iter();
                result.extend(run.map(|right| function(left.clone(), right.clone())));
            }
            (false, false) => result.extend(std::iter::repeat_n(
                function(left[0].clone(), right[0].clone()),
                run.length,
            )),
        }
    }
    Ok((shape, result))
}

/// The longest run of trailing axes along which each side either advances on every axis or on none.
struct Run {
    /// How many leading axes lie outside.
    outer_axes: usize,
    length: usize,
    moves_left: bool,
    moves_right: bool,
}

impl Run {
    fn of(shape: &[usize], left: &[usize], right: &[usize]) -> Self {
        let moves = |side: &[usize], axis: usize| {
            (axis + side.len()).checked_sub(shape.len()).is_some_and(|axis| side[axis] != 1)
        };
        let mut run =
            Run { outer_axes: shape.len(), length: 1, moves_left: true, moves_right: true };
        for axis in (0..shape.len()).rev() {
            if shape[axis] != 1 {
                let here = (moves(left, axis), moves(right, axis));
                if run.length > 1 && here != (run.moves_left, run.moves_right) {
                    break;
                }
                (run.moves_left, run.moves_right) = here;
                run.length *= shape[axis];
            }
            run.outer_axes = axis;
        }
        run
    }

    /// Where the run starts on either side, for every index of the axes outside it.
    fn starts(
        &self,
        shape: &[usize],
        left: &[usize],
        right: &[usize],
    ) -> impl Iterator<Item = (usize, usize)> + use<> {
        let outer = &shape[..self.outer_axes];
        let offsets = |side: &[usize]| {
            let side_strides = strides(side);
            let steps: Vec<usize> = (0..outer.len())
                .map(|axis| match (axis + side.len()).checked_sub(shape.len()) {
                    Some(axis) if side[axis] != 1 => side_strides[axis],
                    _ => 0,
                })
                .collect();
            strided_indices(outer, &steps, 0)
        };
        offsets(left).into_iter().zip(offsets(right))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broadcast::broadcast_indices;

    #[test]
    fn every_broadcast_agrees_with_index_lists() {
        let shapes: [&[usize]; 11] = [
            &[],
            &[1],
            &[3],
            &[2, 3],
            &[2, 1],
            &[1, 3],
            &[4, 2, 3],
            &[4, 1, 3],
            &[4, 2, 1],
            &[1, 2, 1],
            &[4, 1, 1],
        ];
        for left in shapes {
            for right in shapes {
                let numbers = |shape: &[usize]| -> Vec<i64> {
                    (0..shape.iter().product::<usize>() as i64).collect()
                };
                let (a, b) = (numbers(left), numbers(right));
                let (shape, sums) =
                    zip_broadcast((left, &a), (right, &b), |a, b| a + 100 * b).unwrap();
                let expected: Vec<i64> = broadcast_indices(left, &shape)
                    .into_iter()
                    .zip(broadcast_indices(right, &shape))
                    .map(|(i, j)| a[i] + 100 * b[j])
                    .collect();
                assert_eq!(sums, expected, "{left:?} {right:?}");
            }
        }
        assert!(
            zip_broadcast((&[2], &[1, 2]), (&[3], &[1, 2, 3]), |a: i64, b: i64| a + b).is_err()
        );
    }
}
