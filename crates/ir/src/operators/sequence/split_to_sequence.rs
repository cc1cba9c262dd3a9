//! SplitToSequence: parts of a tensor along an axis, as a sequence.

use std::sync::Arc;

use crate::axis::normalise_axis;
use crate::error::OperatorError;
use crate::operator::{Inputs, NodeSource, Operator};
use crate::operators::layout::selection::{position_of, select};
use crate::tensor::Tensor;
use crate::value::Value;

/// The most parts that a tensor may fall into.
const MAX_PARTS: usize = 1 << 20;

/// Parts of one size, of given sizes, or the single positions.
#[derive(Clone, Debug)]
struct SplitToSequence {
    axis: i64,
    /// Single positions keep the axis.
    keeps_axis: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let axis = source.attributes.int_or("axis", 0)?;
    Ok(Arc::new(SplitToSequence { axis, keeps_axis: source.attributes.flag_or("keepdims", true)? }))
}

/// The sizes of the parts of a dimension.
fn part_sizes(dimension: usize, split: Option<&Tensor>) -> Result<Vec<usize>, OperatorError> {
    let invalid = || OperatorError::Invalid(format!("{dimension} cannot be split as asked"));
    let equal = |size: usize| match dimension.div_ceil(size) {
        count if count > MAX_PARTS => Err(invalid()),
        count => Ok((0..count).map(|part| size.min(dimension - part * size)).collect()),
    };
    let Some(split) = split else {
        return equal(1);
    };
    let given = split.to_i64s()?;
    let sizes: Result<Vec<usize>, _> = given.iter().map(|&size| usize::try_from(size)).collect();
    let sizes = sizes.map_err(|_| invalid())?;
    match (split.rank(), &sizes[..]) {
        (0, &[size]) if size > 0 => equal(size),
        (1, _) => {
            let total = sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
            if total == Some(dimension) { Ok(sizes) } else { Err(invalid()) }
        }
        _ => Err(invalid()),
    }
}

impl Operator for SplitToSequence {
    fn name(&self) -> &'static str {
        "SplitToSequence"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let axis = normalise_axis(self.axis, x.rank())?;
        let split = inputs.optional_tensor(1)?;
        let mut start = 0;
        let mut parts = Vec::new();
        for size in part_sizes(x.shape()[axis], split)? {
            let mut shape = x.shape().to_vec();
            shape[axis] = size;
            let position = |along, index| if along == axis { start + index } else { index };
            parts.push(match split {
                None if !self.keeps_axis => position_of(x, axis, start)?,
                _ => select(x, shape, position)?,
            });
            start += size;
        }
        Ok(vec![Value::Sequence(x.data_type(), parts)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_dimension() {
        let sizes = |dimension, split: Option<Tensor>| part_sizes(dimension, split.as_ref()).ok();
        assert_eq!(sizes(3, None), Some(vec![1, 1, 1]));
        assert_eq!(sizes(5, Some(Tensor::scalar(2i64))), Some(vec![2, 2, 1]));
        assert_eq!(sizes(5, Some(Tensor::vector(vec![5i32, 0]))), Some(vec![5, 0]));
        assert_eq!(sizes(5, Some(Tensor::scalar(0i64))), None);
        assert_eq!(sizes(5, Some(Tensor::vector(vec![2i64, 2]))), None);
        assert_eq!(sizes(5, Some(Tensor::vector(vec![6i64, -1]))), None);
        assert_eq!(sizes(usize::MAX, None), None);
    }
}
