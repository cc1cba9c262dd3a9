//! Indices as models give them: negative ones count from the end, and none may lie outside.

use crate::error::OperatorError;

/// The index as a position in a dimension.
pub(super) fn normalise_index(index: i64, dimension: usize) -> Result<usize, OperatorError> {
    let shifted = if index < 0 { index.checked_add(dimension as i64) } else { Some(index) };
    shifted
        .and_then(|index| usize::try_from(index).ok())
        .filter(|&index| index < dimension)
        .ok_or_else(|| {
            OperatorError::Invalid(format!("index {index} is outside a dimension of {dimension}"))
        })
}
