//! Squeeze: drops dimensions of size 1.

use std::sync::Arc;

use crate::axis::normalise_axes;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

/// The input without the named dimensions, or without all of size 1 where none are named.
#[derive(Clone, Debug)]
pub struct Squeeze {
    /// The axes, where the operator set has them as an attribute; the second input otherwise.
    pub axes: Option<Vec<i64>>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let axes = match source.opset {
        ..13 => source.attributes.ints("axes")?.map(<[i64]>::to_vec),
        _ => None,
    };
    Ok(Arc::new(Squeeze { axes }))
}

/// The dimensions that stay; `None` where that cannot be told.
fn squeezed(
    from: &[Option<usize>],
    axes: Option<&[i64]>,
) -> Result<Option<Vec<Option<usize>>>, OperatorError> {
    let Some(axes) = axes else {
        let known = from.iter().all(Option::is_some);
        return Ok(known.then(|| from.iter().copied().filter(|&size| size != Some(1)).collect()));
    };
    let axes = normalise_axes(axes, from.len())?;
    if let Some(&axis) = axes.iter().find(|&&axis| from[axis].is_some_and(|size| size != 1)) {
        return Err(OperatorError::Invalid(format!("axis {axis} of {from:?} is not of size 1")));
    }
    let stays = |(axis, &size): (usize, &Option<usize>)| (!axes.contains(&axis)).then_some(size);
    Ok(Some(from.iter().enumerate().filter_map(stays).collect()))
}

impl Operator for Squeeze {
    fn name(&self) -> &'static str {
        "Squeeze"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let given = inputs.optional_tensor(1)?.map(|axes| axes.to_i64s()).transpose()?;
        let from: Vec<Option<usize>> = x.shape().iter().copied().map(Some).collect();
        let to = squeezed(&from, self.axes.as_deref().or(given.as_deref()))?;
        let shape = to.into_iter().flatten().flatten().collect();
        Ok(vec![x.reshaped(shape)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let given = inputs.constant_i64s(1);
        let axes = self.axes.as_deref().or(given.as_deref());
        let axes_unknown = axes.is_none() && inputs.fact(1).is_some();
        let dimensions = match inputs.dimensions(0) {
            Some(from) if !axes_unknown => squeezed(from, axes)?,
            _ => None,
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::squeezed;

    #[test]
    fn unknown_dimensions_hide_the_rank_only_where_no_axis_is_named() {
        let from = [Some(1), None, Some(3)];
        assert_eq!(squeezed(&from, None), Ok(None));
        assert_eq!(squeezed(&from, Some(&[0])), Ok(Some(vec![None, Some(3)])));
        assert_eq!(squeezed(&from, Some(&[-2])), Ok(Some(vec![Some(1), Some(3)])));
        assert!(squeezed(&from, Some(&[2])).is_err());
        assert!(squeezed(&from, Some(&[0, -3])).is_err());
    }
}
