//! Transpose: permutes the axes.

use std::sync::Arc;

use crate::broadcast::strided_indices;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, strides};
use crate::value::Value;

/// Output axis `i` is input axis `permutation[i]`; without a permutation the axes are reversed.
#[derive(Clone, Debug)]
pub struct Transpose {
    /// The permutation, where given.
    pub permutation: Option<Vec<usize>>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let permutation = match source.attributes.ints("perm")? {
        None => None,
        Some(given) => Some(check_permutation(given)?),
    };
    Ok(Arc::new(Transpose { permutation }))
}

fn check_permutation(given: &[i64]) -> Result<Vec<usize>, OperatorError> {
    let mut seen = vec![false; given.len()];
    for &axis in given {
        let slot = usize::try_from(axis).ok().and_then(|axis| seen.get_mut(axis));
        match slot {
            Some(seen) if !*seen => *seen = true,
            _ => {
                let problem = format!("{given:?} is not a permutation");
                return Err(OperatorError::Attribute { name: "perm".into(), problem });
            }
        }
    }
    Ok(given.iter().map(|&axis| axis as usize).collect())
}

impl Transpose {
    /// The permutation for tensors of the given rank.
    pub fn permutation_for(&self, rank: usize) -> Result<Vec<usize>, OperatorError> {
        match &self.permutation {
            None => Ok((0..rank).rev().collect()),
            Some(permutation) if permutation.len() == rank => Ok(permutation.clone()),
            Some(permutation) => Err(OperatorError::Invalid(format!(
                "a permutation of {} axes on a tensor of rank {rank}",
                permutation.len()
            ))),
        }
    }
}

/// The tensor with its axes permuted: new axis `i` is old axis `permutation[i]`.
pub fn transpose(tensor: &Tensor, permutation: &[usize]) -> Result<Tensor, OperatorError> {
    let from = strides(tensor.shape());
    let shape: Vec<usize> = permutation.iter().map(|&axis| tensor.shape()[axis]).collect();
    let steps: Vec<usize> = permutation.iter().map(|&axis| from[axis]).collect();
    let indices = strided_indices(&shape, &steps, 0);
    tensor.gathered(shape, &indices)
}

impl Operator for Transpose {
    fn name(&self) -> &'static str {
        "Transpose"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        Ok(vec![transpose(x, &self.permutation_for(x.rank())?)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match inputs.dimensions(0) {
            None => None,
            Some(from) => {
                Some(self.permutation_for(from.len())?.iter().map(|&axis| from[axis]).collect())
            }
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
    fn axes_are_permuted() {
        let tensor = Tensor::from_vec(vec![2, 3], vec![0i64, 1, 2, 3, 4, 5]).unwrap();
        let turned = transpose(&tensor, &[1, 0]).unwrap();
        assert_eq!(turned.shape(), &[3, 2]);
        assert_eq!(turned.elements::<i64>().unwrap(), &[0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn what_is_no_permutation_is_refused() {
        for given in [&[0, 0][..], &[0, 2], &[-1, 0]] {
            assert!(check_permutation(given).is_err(), "{given:?}");
        }
    }
}
