//! Concat: tensors one after the other along an axis.

use std::sync::Arc;

use crate::axis::{around_axis, normalise_axis, permuted_axis};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// All inputs, joined along one axis; they agree in every other.
#[derive(Clone, Debug)]
pub struct Concat {
    /// The axis, from the end where negative.
    pub axis: i64,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let axis = source.attributes.int("axis")?.ok_or_else(|| OperatorError::Attribute {
        name: "axis".into(),
        problem: "is missing".into(),
    })?;
    Ok(Arc::new(Concat { axis }))
}

/// Joins tensors that agree in all dimensions but `axis`.
pub fn concat(tensors: &[&Tensor], axis: usize) -> Result<Tensor, OperatorError> {
    let chain = Tensor::chained(tensors)?;
    let mut shape = tensors[0].shape().to_vec();
    let rank = shape.len();
    *shape.get_mut(axis).ok_or(OperatorError::Axis { axis: axis as i64, rank })? = 0;
    for tensor in tensors {
        let agrees = |(at, (left, right)): (usize, (&usize, &usize))| at == axis || left == right;
        if tensor.rank() != shape.len() || !shape.iter().zip(tensor.shape()).enumerate().all(agrees)
        {
            let (left, right) = (tensors[0].shape().to_vec(), tensor.shape().to_vec());
            return Err(OperatorError::Shapes { left, right });
        }
        shape[axis] = shape[axis].saturating_add(tensor.shape()[axis]);
    }
    let count = checked_count(&shape, chain.data_type())?;
    if count == 0 {
        return chain.reshaped(shape);
    }
    let (before, _, after) = around_axis(&shape, axis);
    if before == 1 {
        return chain.reshaped(shape);
    }
    let mut indices = Vec::with_capacity(count);
    for row in 0..before {
        let mut base = 0;
        for tensor in tensors {
            let run = tensor.shape()[axis] * after;
            indices.extend(base + row * run..base + (row + 1) * run);
            base += tensor.len();
        }
    }
    chain.gathered(shape, &indices)
}

/// Joins tensors of one shape along a new axis, which may stand last.
pub fn stack(tensors: &[&Tensor], axis: usize) -> Result<Tensor, OperatorError> {
    let with_axis = |tensor: &&Tensor| {
        let mut shape = tensor.shape().to_vec();
        if axis > shape.len() {
            return Err(OperatorError::Axis { axis: axis as i64, rank: shape.len() + 1 });
        }
        shape.insert(axis, 1);
        tensor.reshaped(shape)
    };
    let tensors = tensors.iter().map(with_axis).collect::<Result<Vec<Tensor>, _>>()?;
    concat(&tensors.iter().collect::<Vec<_>>(), axis)
}

impl Operator for Concat {
    fn name(&self) -> &'static str {
        "Concat"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let tensors: Vec<&Tensor> =
            (0..inputs.len()).map(|index| inputs.tensor(index)).collect::<Result<_, _>>()?;
        let rank = tensors.first().ok_or(OperatorError::MissingInput(0))?.rank();
        Ok(vec![concat(&tensors, normalise_axis(self.axis, rank)?)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let all = 0..inputs.len();
        let data_type = all.clone().find_map(|index| inputs.data_type(index));
        let Some(rank) = all.clone().find_map(|index| Some(inputs.dimensions(index)?.len())) else {
            return Ok(vec![Fact::partial(data_type, None)]);
        };
        let axis = normalise_axis(self.axis, rank)?;
        let mut joined = vec![None; rank];
        let mut along = Some(0usize);
        for index in all {
            let Some(dimensions) = inputs.dimensions(index) else {
                along = None;
                continue;
            };
            if dimensions.len() != rank {
                let problem =
                    format!("input {index} of rank {} beside rank {rank}", dimensions.len());
                return Err(OperatorError::Invalid(problem));
            }
            along = along.zip(dimensions[axis]).and_then(|(sum, size)| sum.checked_add(size));
            for (at, (known, &given)) in joined.iter_mut().zip(dimensions).enumerate() {
                match (*known, given) {
                    (Some(left), Some(right)) if at != axis && left != right => {
                        return Err(OperatorError::Shapes { left: vec![left], right: vec![right] });
                    }
                    _ => *known = known.or(given),
                }
            }
        }
        joined[axis] = along;
        Ok(vec![Fact::partial(data_type, Some(joined))])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let axis = permuted_axis(self.axis, permutation)?;
        Some(Arc::new(Concat { axis }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_dimension_is_filled_in_by_another_input() {
        let left = Fact::partial(None, Some(vec![None, Some(2), Some(4)]));
        let right = Fact::partial(None, Some(vec![Some(3), Some(5), None]));
        let infer = |axis, facts: &[Option<&Fact>]| {
            Concat { axis }.infer(&InputFacts::new(facts, 1)).map(|mut facts| facts.remove(0))
        };
        let joined = infer(-2, &[Some(&left), Some(&right)]).unwrap();
        assert_eq!(joined.dimensions, Some(vec![Some(3), Some(7), Some(4)]));
        let joined = infer(1, &[Some(&left), Some(&Fact::unknown())]).unwrap();
        assert_eq!(joined.dimensions, Some(vec![None, None, Some(4)]));
        assert!(infer(0, &[Some(&left), Some(&right)]).is_err());
    }
}
