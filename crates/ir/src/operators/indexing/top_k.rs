//! TopK: the largest or smallest elements along an axis, and where they stood.

use std::sync::Arc;

use super::order::comparison;
use crate::axis::{around_axis, normalise_axis};
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// The first `k` elements in descending or ascending order, equal ones by index.
#[derive(Clone, Debug)]
struct TopK {
    axis: i64,
    /// Where the operator set has it as an attribute; the second input otherwise.
    k: Option<i64>,
    largest: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let k = match source.opset {
        ..10 => Some(attributes.int("k")?.ok_or_else(|| OperatorError::Attribute {
            name: "k".into(),
            problem: "is missing".into(),
        })?),
        _ => None,
    };
    let (axis, largest) = (attributes.int_or("axis", -1)?, attributes.flag_or("largest", true)?);
    Ok(Arc::new(TopK { axis, k, largest }))
}

fn check_k(k: i64, dimension: usize) -> Result<usize, OperatorError> {
    usize::try_from(k)
        .ok()
        .filter(|&k| k <= dimension)
        .ok_or_else(|| OperatorError::Invalid(format!("the top {k} of a dimension of {dimension}")))
}

impl Operator for TopK {
    fn name(&self) -> &'static str {
        "TopK"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let axis = normalise_axis(self.axis, x.rank())?;
        let k = match self.k {
            Some(k) => k,
            None => inputs.tensor(1)?.only::<i64>()?,
        };
        let k = check_k(k, x.shape()[axis])?;
        let mut shape = x.shape().to_vec();
        shape[axis] = k;
        let count = checked_count(&shape, DataType::I64)?;
        let compare = comparison(x)?;
        let mut offsets = vec![0; count];
        let mut positions = vec![0i64; count];
        if count > 0 {
            let (before, along, after) = around_axis(x.shape(), axis);
            for lane in 0..before * after {
                let (outer, inner) = (lane / after, lane % after);
                let offset = |index: usize| (outer * along + index) * after + inner;
                let mut order: Vec<usize> = (0..along).collect();
                // The sort is stable, so equal elements stay in order of their index.
                order.sort_by(|&left, &right| {
                    let ascending = compare(offset(left), offset(right));
                    if self.largest { ascending.reverse() } else { ascending }
                });
                for (place, &index) in order[..k].iter().enumerate() {
                    let target = (outer * k + place) * after + inner;
                    offsets[target] = offset(index);
                    positions[target] = index as i64;
                }
            }
        }
        let values = x.gathered(shape.clone(), &offsets)?;
        Ok(vec![values.into(), Tensor::from_vec(shape, positions)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let given = inputs.constant_i64s(1).and_then(|k| k.first().copied());
        let dimensions = match inputs.dimensions(0) {
            None => None,
            Some(from) => {
                let axis = normalise_axis(self.axis, from.len())?;
                let mut dimensions = from.to_vec();
                dimensions[axis] = match self.k.or(given) {
                    None => None,
                    Some(k) => Some(check_k(k, from[axis].unwrap_or(usize::MAX))?),
                };
                Some(dimensions)
            }
        };
        let values = Fact::partial(inputs.data_type(0), dimensions.clone());
        Ok(vec![values, Fact::partial(Some(DataType::I64), dimensions)])
    }
}
