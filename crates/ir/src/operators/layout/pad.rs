//! Pad: more places around a tensor, or fewer.

use std::sync::Arc;

use super::selection::{select_or_fill, zero};
use super::slice::renamed;
use crate::axis::normalise_axis;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// What stands in the new places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadMode {
    /// One value.
    Constant,
    /// The tensor mirrored at its first and last positions, which are not repeated.
    Reflect,
    /// The nearest element.
    Edge,
    /// The tensor again, as on a torus.
    Wrap,
}

/// Adds places before and after each axis, or drops them where the number is negative.
#[derive(Clone, Debug)]
pub struct Pad {
    /// What the new places hold.
    pub mode: PadMode,
    /// Places before every axis, then after every axis, and the constant, where the operator set has them as
    /// attributes; the inputs from the second on otherwise.
    pub attributes: Option<(Vec<i64>, f32)>,
    /// Where set, an axis that the inputs name as `a` is the data's axis `renamed_axes[a]`.
    pub renamed_axes: Option<Vec<usize>>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let mode = match source.attributes.string_or("mode", "constant")? {
        "constant" => PadMode::Constant,
        "reflect" => PadMode::Reflect,
        "edge" => PadMode::Edge,
        "wrap" => PadMode::Wrap,
        other => {
            let problem = format!("'{other}' is none of constant, reflect, edge and wrap");
            return Err(OperatorError::Attribute { name: "mode".into(), problem });
        }
    };
    let attributes = match source.opset {
        ..11 => {
            let pads = source.attributes.ints("pads")?.ok_or_else(|| OperatorError::Attribute {
                name: "pads".into(),
                problem: "is missing".into(),
            })?;
            Some((pads.to_vec(), source.attributes.float_or("value", 0.0)?))
        }
        _ => None,
    };
    Ok(Arc::new(Pad { mode, attributes, renamed_axes: None }))
}

impl Pad {
    /// The places to add before and after each of `rank` axes, from the pads and axes that a model gives.
    pub fn amounts(
        &self,
        rank: usize,
        pads: &[i64],
        axes: Option<&[i64]>,
    ) -> Result<Vec<(i64, i64)>, OperatorError> {
        let count = axes.map_or(rank, <[i64]>::len);
        if pads.len() != count.saturating_mul(2) {
            let problem = format!("{} pads for {count} axes", pads.len());
            return Err(OperatorError::Invalid(problem));
        }
        let mut amounts = vec![(0, 0); rank];
        for (index, (&before, &after)) in pads.iter().zip(&pads[count..]).enumerate() {
            let named = axes.map_or(index as i64, |axes| axes[index]);
            let axis = normalise_axis(named, rank)?;
            let renamed = match &self.renamed_axes {
                None => Some(axis),
                Some(renamed) => renamed.get(axis).copied(),
            };
            let slot = renamed.and_then(|axis| amounts.get_mut(axis));
            *slot.ok_or(OperatorError::Axis { axis: named, rank })? = (before, after);
        }
        Ok(amounts)
    }

    /// The amounts, where they are attributes or constants.
    pub fn constant_amounts(
        &self,
        rank: usize,
        inputs: &InputFacts<'_>,
    ) -> Result<Option<Vec<(i64, i64)>>, OperatorError> {
        if let Some((pads, _)) = &self.attributes {
            return self.amounts(rank, pads, None).map(Some);
        }
        let axes = inputs.constant_i64s(3);
        if axes.is_none() && inputs.fact(3).is_some() {
            return Ok(None);
        }
        match inputs.constant_i64s(1) {
            None => Ok(None),
            Some(pads) => self.amounts(rank, &pads, axes.as_deref()).map(Some),
        }
    }
}

/// A dimension after padding.
fn padded(dimension: usize, (before, after): (i64, i64)) -> Result<usize, OperatorError> {
    i64::try_from(dimension)
        .ok()
        .and_then(|size| size.checked_add(before)?.checked_add(after))
        .and_then(|size| usize::try_from(size).ok())
        .ok_or_else(|| {
            OperatorError::Invalid(format!(
                "a dimension of {dimension} padded by {before}, {after}"
            ))
        })
}

/// One axis of a tensor under padding: the positions `first..first + kept` stay, the rest is made up.
struct Window {
    first: i64,
    kept: i64,
    before: i64,
}

impl Window {
    fn new(dimension: usize, (before, after): (i64, i64)) -> Self {
        let first = before.saturating_neg().max(0);
        let end = (dimension as i64).saturating_add(after.min(0));
        Self { first, kept: end.saturating_sub(first).max(0), before: before.max(0) }
    }

    /// Where the element at output place `index` comes from; `None` for the constant.
    fn position(&self, index: usize, mode: PadMode) -> Option<usize> {
        let at = index as i64 - self.before;
        let last = self.kept - 1;
        let inside = match mode {
            _ if (0..self.kept).contains(&at) => at,
            PadMode::Constant => return None,
            _ if self.kept == 0 => return None,
            PadMode::Edge => at.clamp(0, last),
            PadMode::Wrap => at.rem_euclid(self.kept),
            PadMode::Reflect if last == 0 => 0,
            PadMode::Reflect => {
                let phase = at.rem_euclid(2 * last);
                if phase > last { 2 * last - phase } else { phase }
            }
        };
        Some((self.first + inside) as usize)
    }
}

impl Operator for Pad {
    fn name(&self) -> &'static str {
        "Pad"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let (amounts, fill) = match &self.attributes {
            Some((pads, value)) => {
                let fill = Tensor::from_f32s(vec![], x.data_type(), vec![*value])?;
                (self.amounts(x.rank(), pads, None)?, fill)
            }
            None => {
                let axes = inputs.optional_tensor(3)?.map(|axes| axes.to_i64s()).transpose()?;
                let pads = inputs.tensor(1)?.to_i64s()?;
                let fill = inputs.optional_tensor(2)?.filter(|fill| !fill.is_empty()).cloned();
                let fill = fill.unwrap_or_else(|| zero(x.data_type()));
                (self.amounts(x.rank(), &pads, axes.as_deref())?, fill)
            }
        };
        let sized = x.shape().iter().zip(&amounts);
        let shape = sized
            .clone()
            .map(|(&dimension, &amount)| padded(dimension, amount))
            .collect::<Result<Vec<usize>, _>>()?;
        let windows: Vec<Window> =
            sized.map(|(&dimension, &amount)| Window::new(dimension, amount)).collect();
        let made_up =
            windows.iter().zip(&shape).any(|(window, &size)| window.kept == 0 && size > 0);
        if made_up && self.mode != PadMode::Constant {
            return Err(OperatorError::Invalid("nothing to pad from along an empty axis".into()));
        }
        let position = |axis: usize, index| windows[axis].position(index, self.mode);
        Ok(vec![select_or_fill(x, shape, position, &fill)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match inputs.dimensions(0) {
            None => None,
            Some(from) => Some(match self.constant_amounts(from.len(), inputs)? {
                None => vec![None; from.len()],
                Some(amounts) => from
                    .iter()
                    .zip(amounts)
                    .map(|(&dimension, amount)| match dimension {
                        Some(dimension) => padded(dimension, amount).map(Some),
                        None => Ok(None),
                    })
                    .collect::<Result<_, _>>()?,
            }),
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let renamed_axes = Some(renamed(self.renamed_axes.as_deref(), permutation)?);
        Some(Arc::new(Pad { renamed_axes, ..self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_from_what_is_kept() {
        use PadMode::*;
        type Case<'a> = (usize, (i64, i64), PadMode, &'a [i64]);
        let cases: [Case<'_>; 9] = [
            (3, (2, 1), Constant, &[-1, -1, 0, 1, 2, -1]),
            (3, (2, 1), Edge, &[0, 0, 0, 1, 2, 2]),
            (3, (4, 3), Reflect, &[0, 1, 2, 1, 0, 1, 2, 1, 0, 1]),
            (3, (4, 2), Wrap, &[2, 0, 1, 2, 0, 1, 2, 0, 1]),
            (4, (-1, -2), Constant, &[1]),
            (4, (-1, 2), Edge, &[1, 2, 3, 3, 3]),
            (4, (-1, 2), Reflect, &[1, 2, 3, 2, 1]),
            (2, (-3, 2), Constant, &[-1]),
            (0, (1, 0), Constant, &[-1]),
        ];
        for (dimension, amount, mode, expected) in cases {
            let window = Window::new(dimension, amount);
            let places = (0..padded(dimension, amount).unwrap())
                .map(|index| window.position(index, mode).map_or(-1, |at| at as i64));
            assert_eq!(places.collect::<Vec<_>>(), expected, "{dimension} {amount:?} {mode:?}");
        }
        assert!(padded(3, (-2, -2)).is_err());
        assert!(padded(3, (i64::MAX, 1)).is_err());
    }
}
