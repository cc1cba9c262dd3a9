//! Split: consecutive parts of a tensor along an axis.

use std::sync::Arc;

use super::selection::select;
use crate::axis::{normalise_axis, permuted_axis};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

/// As many parts of the input as the node has outputs.
#[derive(Clone, Debug)]
pub struct Split {
    /// The axis, from the end where negative.
    pub axis: i64,
    /// The parts' sizes, where the operator set has them as an attribute; the optional second input otherwise.
    pub sizes: Option<Vec<i64>>,
    /// The last of the equal parts may be smaller.
    pub uneven: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let sizes = match source.opset {
        ..13 => attributes.ints("split")?.map(<[i64]>::to_vec),
        _ => None,
    };
    let parts = if source.opset < 18 { None } else { attributes.int("num_outputs")? };
    if let Some(parts) = parts.filter(|&parts| usize::try_from(parts) != Ok(source.output_count)) {
        let problem = format!("is {parts} on a node of {} outputs", source.output_count);
        return Err(OperatorError::Attribute { name: "num_outputs".into(), problem });
    }
    let axis = attributes.int_or("axis", 0)?;
    Ok(Arc::new(Split { axis, sizes, uneven: parts.is_some() }))
}

impl Split {
    /// The sizes of `count` parts of a dimension, given the sizes that the node asks for, if it does.
    pub fn part_sizes(
        &self,
        dimension: usize,
        count: usize,
        given: Option<&[i64]>,
    ) -> Result<Vec<usize>, OperatorError> {
        if let Some(given) = self.sizes.as_deref().or(given) {
            let sizes: Option<Vec<usize>> =
                given.iter().map(|&size| usize::try_from(size).ok()).collect();
            let total = |sizes: &Vec<usize>| {
                sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size))
            };
            return sizes
                .filter(|sizes| total(sizes) == Some(dimension) && sizes.len() == count)
                .ok_or_else(|| {
                    OperatorError::Invalid(format!(
                        "{dimension} cannot be split into {count} parts of sizes {given:?}"
                    ))
                });
        }
        if count == 0 || (!self.uneven && !dimension.is_multiple_of(count)) {
            let problem = format!("{dimension} cannot be split into {count} equal parts");
            return Err(OperatorError::Invalid(problem));
        }
        let size = dimension.div_ceil(count);
        Ok((0..count).map(|part| dimension.saturating_sub(part * size).min(size)).collect())
    }
}

impl Operator for Split {
    fn name(&self) -> &'static str {
        "Split"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let axis = normalise_axis(self.axis, x.rank())?;
        let given = inputs.optional_tensor(1)?.map(|sizes| sizes.to_i64s()).transpose()?;
        let sizes = self.part_sizes(x.shape()[axis], inputs.output_count(), given.as_deref())?;
        let mut start = 0;
        let mut parts = Vec::with_capacity(sizes.len());
        for size in sizes {
            let mut shape = x.shape().to_vec();
            shape[axis] = size;
            let position = |along, index| if along == axis { start + index } else { index };
            parts.push(select(x, shape, position)?.into());
            start += size;
        }
        Ok(parts)
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let count = inputs.output_count();
        let Some(from) = inputs.dimensions(0) else {
            return Ok(vec![Fact::partial(inputs.data_type(0), None); count]);
        };
        let axis = normalise_axis(self.axis, from.len())?;
        let given = inputs.constant_i64s(1);
        let asked = self.sizes.as_deref().or(given.as_deref());
        let sizes: Vec<Option<usize>> = match (from[axis], asked) {
            (_, None) if inputs.fact(1).is_some() => vec![None; count],
            (Some(dimension), _) => {
                self.part_sizes(dimension, count, asked)?.into_iter().map(Some).collect()
            }
            (None, Some(asked)) => {
                (0..count).map(|part| usize::try_from(*asked.get(part)?).ok()).collect()
            }
            (None, None) => vec![None; count],
        };
        let part = |size| {
            let mut dimensions = from.to_vec();
            dimensions[axis] = size;
            Fact::partial(inputs.data_type(0), Some(dimensions))
        };
        Ok(sizes.into_iter().map(part).collect())
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(Split { axis: permuted_axis(self.axis, permutation)?, ..self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_must_cover_the_dimension() {
        let even = Split { axis: 0, sizes: None, uneven: false };
        let uneven = Split { uneven: true, ..even.clone() };
        assert_eq!(even.part_sizes(6, 3, None), Ok(vec![2, 2, 2]));
        assert_eq!(uneven.part_sizes(7, 3, None), Ok(vec![3, 3, 1]));
        assert_eq!(uneven.part_sizes(5, 4, None), Ok(vec![2, 2, 1, 0]));
        assert_eq!(even.part_sizes(6, 2, Some(&[0, 6])), Ok(vec![0, 6]));
        assert!(even.part_sizes(7, 3, None).is_err());
        assert!(even.part_sizes(7, 0, None).is_err());
        for given in [&[4, 4][..], &[-1, 7], &[6], &[i64::MAX, i64::MAX]] {
            assert!(even.part_sizes(6, 2, Some(given)).is_err(), "{given:?}");
        }
    }
}
