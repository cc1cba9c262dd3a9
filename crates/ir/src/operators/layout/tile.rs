//! Tile: a tensor repeated along each axis.

use std::sync::Arc;

use super::expand::sizes;
use super::selection::select;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

/// The first input, repeated along each axis as often as the second input says.
#[derive(Clone, Debug)]
pub struct Tile;

pub(super) fn build(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Tile))
}

fn tiled(from: &[Option<usize>], repeats: &[i64]) -> Result<Vec<Option<usize>>, OperatorError> {
    let repeats = sizes(repeats)?;
    if repeats.len() != from.len() {
        let problem = format!("{} repeats for rank {}", repeats.len(), from.len());
        return Err(OperatorError::Invalid(problem));
    }
    from.iter()
        .zip(repeats)
        .map(|(&dimension, repeat)| match dimension {
            None => Ok(None),
            Some(dimension) => dimension.checked_mul(repeat).map(Some).ok_or_else(|| {
                OperatorError::Invalid(format!("{dimension} repeated {repeat} times"))
            }),
        })
        .collect()
}

impl Operator for Tile {
    fn name(&self) -> &'static str {
        "Tile"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let from: Vec<Option<usize>> = x.shape().iter().copied().map(Some).collect();
        let shape = tiled(&from, &inputs.tensor(1)?.to_i64s()?)?.into_iter().flatten().collect();
        // Asked only for places of a non-empty output, so that no dimension is zero.
        Ok(vec![select(x, shape, |axis, index| index % x.shape()[axis])?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match (inputs.dimensions(0), inputs.constant_i64s(1)) {
            (Some(from), Some(repeats)) => Some(tiled(from, &repeats)?),
            (Some(from), None) => Some(vec![None; from.len()]),
            (None, _) => None,
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
