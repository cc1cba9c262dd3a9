//! Unique: what is left of a tensor when every value, or every slice along an axis, is kept once.

use std::cmp::Ordering;
use std::sync::Arc;

use super::order::comparison;
use crate::axis::{around_axis, normalise_axis};
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::layout::selection::select;
use crate::tensor::{Tensor, checked_count, element_count};
use crate::value::Value;

/// The distinct slices, where each first stood, which of them each slice is, and how often each stood.
#[derive(Clone, Debug)]
struct Unique {
    /// Without an axis the input is flattened.
    axis: Option<i64>,
    /// Ascending order rather than that of first appearance.
    sorted: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    Ok(Arc::new(Unique {
        axis: attributes.int("axis")?,
        sorted: attributes.flag_or("sorted", true)?,
    }))
}

/// The groups of equal slices along an axis, each in order of position, in ascending order.
fn equal_slices(x: &Tensor, axis: usize) -> Result<Vec<Vec<usize>>, OperatorError> {
    let count = x.shape()[axis];
    checked_count(&[count], DataType::I64)?;
    let rest: Vec<usize> =
        x.shape().iter().enumerate().filter(|&(at, _)| at != axis).map(|(_, &size)| size).collect();
    // Slices without elements are all equal, and their dimensions may be too large to walk.
    let (before, after) = match element_count(&rest) {
        Some(0) => (0, 0),
        _ => {
            let (before, _, after) = around_axis(x.shape(), axis);
            (before, after)
        }
    };
    let compare_elements = comparison(x)?;
    let compare = |left: usize, right: usize| {
        let offset = |slice, outer, inner| (outer * count + slice) * after + inner;
        (0..before)
            .flat_map(|outer| (0..after).map(move |inner| (outer, inner)))
            .map(|(outer, inner)| {
                compare_elements(offset(left, outer, inner), offset(right, outer, inner))
            })
            .find(|&order| order != Ordering::Equal)
            .unwrap_or(Ordering::Equal)
    };
    let mut order: Vec<usize> = (0..count).collect();
    // The sort is stable, so that each group begins with its first appearance.
    order.sort_by(|&left, &right| compare(left, right));
    let groups = order.chunk_by(|&left, &right| compare(left, right) == Ordering::Equal);
    Ok(groups.map(<[usize]>::to_vec).collect())
}

impl Operator for Unique {
    fn name(&self) -> &'static str {
        "Unique"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let (x, axis) = match self.axis {
            Some(axis) => (x.clone(), normalise_axis(axis, x.rank())?),
            None => (x.reshaped(vec![x.len()])?, 0),
        };
        let mut groups = equal_slices(&x, axis)?;
        if !self.sorted {
            groups.sort_by_key(|group| group[0]);
        }
        let mut inverse = vec![0i64; x.shape()[axis]];
        for (place, group) in groups.iter().enumerate() {
            group.iter().for_each(|&slice| inverse[slice] = place as i64);
        }
        let mut shape = x.shape().to_vec();
        shape[axis] = groups.len();
        let position = |along, index: usize| if along == axis { groups[index][0] } else { index };
        let distinct = select(&x, shape, position)?;
        let firsts = groups.iter().map(|group| group[0] as i64).collect();
        let counts = groups.iter().map(|group| group.len() as i64).collect();
        let numbers = [firsts, inverse, counts].map(|list| Value::from(Tensor::vector(list)));
        Ok([Value::from(distinct)].into_iter().chain(numbers).collect())
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let mut dimensions = match self.axis {
            None => Some(vec![None]),
            Some(_) => inputs.dimensions(0).map(<[_]>::to_vec),
        };
        if let (Some(axis), Some(dimensions)) = (self.axis, &mut dimensions) {
            let axis = normalise_axis(axis, dimensions.len())?;
            dimensions[axis] = None;
        }
        let numbers = Fact::partial(Some(DataType::I64), Some(vec![None]));
        let values = Fact::partial(inputs.data_type(0), dimensions);
        Ok(vec![values, numbers.clone(), numbers.clone(), numbers])
    }
}
