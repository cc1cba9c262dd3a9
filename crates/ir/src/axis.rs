//! Axes as models write them, negative ones counting from the end.

use crate::error::OperatorError;

/// The axis as an index into `rank` dimensions.
pub fn normalise_axis(axis: i64, rank: usize) -> Result<usize, OperatorError> {
    let shifted = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    shifted
        .and_then(|axis| usize::try_from(axis).ok())
        .filter(|&axis| axis < rank)
        .ok_or(OperatorError::Axis { axis, rank })
}

/// Several axes, sorted; a repeated one is refused.
pub fn normalise_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>, OperatorError> {
    let mut normal =
        axes.iter().map(|&axis| normalise_axis(axis, rank)).collect::<Result<Vec<_>, _>>()?;
    normal.sort_unstable();
    if normal.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(OperatorError::Invalid(format!("axes {axes:?} name one axis twice")));
    }
    Ok(normal)
}

/// The shape seen as (before, along, after) an axis: how operators along one axis walk a tensor.
pub fn around_axis(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

/// Where an axis goes when new axis `i` is old axis `permutation[i]`.
pub fn permuted_axis(axis: i64, permutation: &[usize]) -> Option<i64> {
    let axis = normalise_axis(axis, permutation.len()).ok()?;
    permutation.iter().position(|&old| old == axis).map(|position| position as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_axes_count_from_the_end() {
        assert_eq!(normalise_axis(-1, 4), Ok(3));
        assert_eq!(normalise_axis(0, 1), Ok(0));
        for (axis, rank) in [(4, 4), (-5, 4), (0, 0), (i64::MIN, 3), (i64::MAX, 3)] {
            assert!(normalise_axis(axis, rank).is_err(), "{axis} in {rank}");
        }
        assert_eq!(normalise_axes(&[-1, 0], 3), Ok(vec![0, 2]));
        assert!(normalise_axes(&[-1, 2], 3).is_err());
    }

    #[test]
    fn an_axis_follows_a_permutation() {
        // Channels first to channels last.
        assert_eq!(permuted_axis(1, &[0, 2, 3, 1]), Some(3));
        assert_eq!(permuted_axis(-1, &[0, 2, 3, 1]), Some(2));
        assert_eq!(permuted_axis(4, &[0, 2, 3, 1]), None);
    }
}
