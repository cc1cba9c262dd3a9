//! CenterCropPad: the middle of a tensor, cut or padded with zeros to given sizes.

use std::sync::Arc;

use super::expand::sizes;
use super::selection::{select_or_fill, zero};
use crate::axis::normalise_axis;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

/// Crops or pads the named axes, all of them where none are named, to the sizes that the second input gives.
#[derive(Clone, Debug)]
struct CenterCropPad {
    axes: Option<Vec<i64>>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(CenterCropPad { axes: source.attributes.ints("axes")?.map(<[i64]>::to_vec) }))
}

impl CenterCropPad {
    /// The named axes as indices.
    fn axes(&self, rank: usize) -> Result<Vec<usize>, OperatorError> {
        match &self.axes {
            None => Ok((0..rank).collect()),
            Some(axes) => axes.iter().map(|&axis| normalise_axis(axis, rank)).collect(),
        }
    }

    fn target<T: Copy>(
        &self,
        from: &[T],
        given: &[i64],
        known: fn(usize) -> T,
    ) -> Result<Vec<T>, OperatorError> {
        let axes = self.axes(from.len())?;
        if axes.len() != given.len() {
            let problem = format!("{} sizes for {} axes", given.len(), axes.len());
            return Err(OperatorError::Invalid(problem));
        }
        let mut target = from.to_vec();
        for (axis, size) in axes.into_iter().zip(sizes(given)?) {
            target[axis] = known(size);
        }
        Ok(target)
    }
}

impl Operator for CenterCropPad {
    fn name(&self) -> &'static str {
        "CenterCropPad"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let shape = self.target(x.shape(), &inputs.tensor(1)?.to_i64s()?, |size| size)?;
        let position = |axis: usize, index: usize| {
            let (from, to) = (x.shape()[axis], shape[axis]);
            let cropped = from.saturating_sub(to) / 2;
            let padded = to.saturating_sub(from) / 2;
            Some((index + cropped).checked_sub(padded)?).filter(|&position| position < from)
        };
        let middle = select_or_fill(x, shape.clone(), position, &zero(x.data_type()))?;
        Ok(vec![middle.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match (inputs.dimensions(0), inputs.constant_i64s(1)) {
            (None, _) => None,
            (Some(from), Some(given)) => Some(self.target(from, &given, Some)?),
            (Some(from), None) => {
                let mut dimensions = from.to_vec();
                self.axes(from.len())?.into_iter().for_each(|axis| dimensions[axis] = None);
                Some(dimensions)
            }
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
