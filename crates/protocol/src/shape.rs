//! Shapes as messages state them.

use weft_ir::{DataType, checked_count};

use crate::limits::MAX_RANK;

/// A dimension as a size in memory.
pub(crate) fn dimension(stated: i64) -> Result<usize, String> {
    usize::try_from(stated).map_err(|_| format!("dimension {stated} of its shape is negative"))
}

/// The number of elements of a shape; an error past [`MAX_RANK`] or the most that one tensor may take.
pub(crate) fn count(shape: &[usize], data_type: DataType) -> Result<usize, String> {
    if shape.len() > MAX_RANK {
        return Err(format!("{} dimensions are more than {MAX_RANK}", shape.len()));
    }
    checked_count(shape, data_type).map_err(|error| error.to_string())
}
