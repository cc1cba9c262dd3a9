//! Reshape: the same elements under another shape.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::{Fact, unknown_dimensions};
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::element_count;
use crate::value::Value;

/// The first input in the shape that the second one gives; one dimension of it may be -1.
#[derive(Clone, Debug)]
pub struct Reshape {
    /// A zero in the requested shape means zero, where it otherwise means the input's dimension.
    pub allow_zero: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Reshape { allow_zero: source.attributes.flag_or("allowzero", false)? }))
}

impl Reshape {
    /// The output's dimensions, as far as the input's tell them.
    pub fn target(
        &self,
        from: &[Option<usize>],
        requested: &[i64],
    ) -> Result<Vec<Option<usize>>, OperatorError> {
        let invalid =
            || OperatorError::Invalid(format!("shape {requested:?} cannot be taken from {from:?}"));
        let mut target = Vec::with_capacity(requested.len());
        let mut rest: Option<usize> = None;
        let mut copied = vec![false; from.len()];
        for (axis, &dimension) in requested.iter().enumerate() {
            target.push(match dimension {
                -1 if rest.is_none() => {
                    rest = Some(axis);
                    None
                }
                0 if !self.allow_zero => {
                    *copied.get_mut(axis).ok_or_else(invalid)? = true;
                    from[axis]
                }
                _ => Some(usize::try_from(dimension).map_err(|_| invalid())?),
            });
        }
        if let Some(rest) = rest {
            // Copied dimensions stand on both sides, so the rest follows even where they are unknown or zero.
            let kept = |&(axis, _): &(usize, &Option<usize>)| !copied.get(axis).is_some_and(|&c| c);
            let source: Option<Vec<usize>> =
                from.iter().enumerate().filter(kept).map(|(_, &dimension)| dimension).collect();
            let given: Vec<usize> = target
                .iter()
                .enumerate()
                .filter(|&(axis, _)| axis != rest)
                .filter(kept)
                .filter_map(|(_, &dimension)| dimension)
                .collect();
            let given = element_count(&given).filter(|&count| count > 0).ok_or_else(invalid)?;
            if let Some(source) = source {
                let source = element_count(&source).ok_or_else(invalid)?;
                if source % given != 0 {
                    return Err(invalid());
                }
                target[rest] = Some(source / given);
            }
        }
        let shape = |dimensions: &[Option<usize>]| {
            dimensions.iter().copied().collect::<Option<Vec<usize>>>()
        };
        match (shape(from), shape(&target)) {
            (Some(from), Some(to)) if element_count(&from) != element_count(&to) => Err(invalid()),
            _ => Ok(target),
        }
    }
}

impl Operator for Reshape {
    fn name(&self) -> &'static str {
        "Reshape"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let from: Vec<Option<usize>> = x.shape().iter().copied().map(Some).collect();
        let target = self.target(&from, &inputs.tensor(1)?.to_i64s()?)?;
        let shape = target.into_iter().collect::<Option<Vec<_>>>();
        let shape = shape.ok_or_else(|| OperatorError::Invalid("shape is not known".into()))?;
        Ok(vec![x.reshaped(shape)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match (inputs.dimensions(0), inputs.constant_i64s(1)) {
            (Some(from), Some(requested)) => Some(self.target(from, &requested)?),
            // Without the input's rank, zeros and the rest are unknown but all else is as requested.
            (None, Some(requested)) => Some(
                requested
                    .iter()
                    .map(|&dimension| {
                        usize::try_from(dimension).ok().filter(|&size| size > 0 || self.allow_zero)
                    })
                    .collect(),
            ),
            (_, None) => match inputs.dimensions(1) {
                Some(&[Some(rank)]) => unknown_dimensions(rank),
                _ => None,
            },
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_follow_from_what_is_known() {
        type Known = Option<usize>;
        type Case<'a> = (&'a [Known], &'a [i64], bool, Option<Vec<Known>>);
        let cases: [Case<'_>; 11] = [
            (&[Some(2), Some(6)], &[3, -1], false, Some(vec![Some(3), Some(4)])),
            (&[Some(2), Some(6)], &[0, 2, -1], false, Some(vec![Some(2), Some(2), Some(3)])),
            (&[None, Some(6)], &[0, 3, -1], false, Some(vec![None, Some(3), Some(2)])),
            (&[None, Some(6)], &[-1, 6], false, Some(vec![None, Some(6)])),
            (&[Some(0), Some(6)], &[0, -1], false, Some(vec![Some(0), Some(6)])),
            (&[Some(0), Some(6)], &[6, 0], true, Some(vec![Some(6), Some(0)])),
            (&[Some(0), Some(6)], &[0, -1], true, None),
            (&[Some(2), Some(6)], &[5, -1], false, None),
            (&[Some(2), Some(6)], &[-1, -1], false, None),
            (&[Some(2)], &[2, 0], false, None),
            (&[Some(2)], &[i64::MAX, i64::MAX, 2], false, None),
        ];
        for (from, requested, allow_zero, expected) in cases {
            let target = Reshape { allow_zero }.target(from, requested);
            assert_eq!(target.ok(), expected, "{from:?} as {requested:?}");
        }
    }
}
