//! TensorScatter: new positions written into a cache along its sequence axis.

use std::sync::Arc;

use super::scatter::{Combination, scatter};
use crate::axis::{around_axis, normalise_axis};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

/// The cache with each sample's update written from its write index on.
#[derive(Clone, Debug)]
struct TensorScatter {
    axis: i64,
    /// Past the end, writing goes on at the start.
    circular: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let circular = match source.attributes.string_or("mode", "linear")? {
        "linear" => false,
        "circular" => true,
        other => {
            let problem = format!("'{other}' is neither linear nor circular");
            return Err(OperatorError::Attribute { name: "mode".into(), problem });
        }
    };
    Ok(Arc::new(TensorScatter { axis: source.attributes.int_or("axis", -2)?, circular }))
}

impl TensorScatter {
    fn place(&self, start: i64, index: usize, dimension: usize) -> Result<usize, OperatorError> {
        let place = start.checked_add(index as i64).and_then(|place| usize::try_from(place).ok());
        match place {
            Some(place) if place < dimension => Ok(place),
            Some(place) if self.circular && dimension > 0 => Ok(place % dimension),
            _ => Err(OperatorError::Invalid(format!(
                "writing {index} past {start} leaves a cache of length {dimension}"
            ))),
        }
    }
}

impl Operator for TensorScatter {
    fn name(&self) -> &'static str {
        "TensorScatter"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (cache, update) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let axis = normalise_axis(self.axis, cache.rank())?;
        let fits =
            |(along, (left, right)): (usize, (&usize, &usize))| along == axis || left == right;
        if axis == 0
            || update.rank() != cache.rank()
            || !update.shape().iter().zip(cache.shape()).enumerate().all(fits)
        {
            let (left, right) = (cache.shape().to_vec(), update.shape().to_vec());
            return Err(OperatorError::Shapes { left, right });
        }
        let batch = cache.shape()[0];
        let starts = inputs.optional_tensor(2)?.map(|starts| starts.to_i64s()).transpose()?;
        if let Some(starts) = starts.as_ref().filter(|starts| starts.len() != batch) {
            let problem = format!("{} write indices for a batch of {batch}", starts.len());
            return Err(OperatorError::Invalid(problem));
        }
        let mut targets = Vec::with_capacity(update.len());
        if !update.is_empty() {
            let (before, along, after) = around_axis(update.shape(), axis);
            let dimension = cache.shape()[axis];
            for prefix in 0..before {
                let sample = prefix / (before / batch);
                let start = starts.as_ref().map_or(0, |starts| starts[sample]);
                for index in 0..along {
                    let place = self.place(start, index, dimension)?;
                    let first = (prefix * dimension + place) * after;
                    targets.extend(first..first + after);
                }
            }
        }
        Ok(vec![scatter(cache, &targets, update, Combination::Replace)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
