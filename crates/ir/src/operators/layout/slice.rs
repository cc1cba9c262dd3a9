//! Slice: a range of positions along each of some axes.

use std::sync::Arc;

use super::selection::select;
use crate::axis::{normalise_axis, permuted_axis};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

/// The positions from starts to ends of some axes, in steps that may be negative.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Where the operator set has them as attributes; the inputs from the second on otherwise.
    pub bounds: Option<SliceBounds>,
    /// Where set, an axis that the bounds name as `a` is the input's axis `renamed_axes[a]`.
    pub renamed_axes: Option<Vec<usize>>,
}

/// What to take of which axes, as a model writes it.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct SliceBounds {
    pub starts: Vec<i64>,
    pub ends: Vec<i64>,
    /// The first axes, where not given.
    pub axes: Option<Vec<i64>>,
    /// All 1, where not given.
    pub steps: Option<Vec<i64>>,
}

/// The positions `start + i * step` for `i` in `0..count` of one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct AxisRange {
    pub start: usize,
    pub step: i64,
    pub count: usize,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let bounds = match source.opset {
        ..10 => {
            let required = |name: &str| {
                let given = source.attributes.ints(name)?.map(<[i64]>::to_vec);
                given.ok_or_else(|| OperatorError::Attribute {
                    name: name.into(),
                    problem: "is missing".into(),
                })
            };
            Some(SliceBounds {
                starts: required("starts")?,
                ends: required("ends")?,
                axes: source.attributes.ints("axes")?.map(<[i64]>::to_vec),
                steps: None,
            })
        }
        _ => None,
    };
    Ok(Arc::new(Slice { bounds, renamed_axes: None }))
}

impl AxisRange {
    fn new(dimension: usize, start: i64, end: i64, step: i64) -> Result<Self, OperatorError> {
        if step == 0 {
            return Err(OperatorError::Invalid("a slice of step 0".into()));
        }
        let size = dimension as i64;
        let shifted = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
        let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
        let (start, end) = (shifted(start).clamp(low, high), shifted(end).clamp(low, high));
        // A start before the first element lies at -1 for negative steps, and so gives nothing.
        let distance = if step > 0 { end - start } else { start - end };
        let count = usize::try_from(distance).unwrap_or(0);
        let count = count.div_ceil(usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX));
        Ok(Self { start: start.max(0) as usize, step, count })
    }

    /// The position at `index`, which is below the count.
    pub fn position(self, index: usize) -> usize {
        (self.start as i64 + index as i64 * self.step) as usize
    }
}

impl Slice {
    /// The range of every axis, `None` where the dimension is unknown and is not taken whole.
    pub fn ranges(
        &self,
        from: &[Option<usize>],
        bounds: &SliceBounds,
    ) -> Result<Vec<Option<AxisRange>>, OperatorError> {
        let SliceBounds { starts, ends, axes, steps } = bounds;
        let count = starts.len();
        let lengths = [Some(ends), axes.as_ref(), steps.as_ref()];
        if count > from.len() || lengths.iter().flatten().any(|list| list.len() != count) {
            return Err(OperatorError::Invalid(format!("slice {bounds:?} of {from:?}")));
        }
        let whole =
            |&dimension: &Option<usize>| Some(AxisRange { start: 0, step: 1, count: dimension? });
        let mut ranges: Vec<Option<AxisRange>> = from.iter().map(whole).collect();
        let mut seen = vec![false; from.len()];
        for index in 0..count {
            let named = axes.as_ref().map_or(index as i64, |axes| axes[index]);
            let axis = self.axis(named, from.len())?;
            if std::mem::replace(&mut seen[axis], true) {
                return Err(OperatorError::Invalid(format!("slice names axis {named} twice")));
            }
            let step = steps.as_ref().map_or(1, |steps| steps[index]);
            ranges[axis] = match from[axis] {
                None => None,
                Some(size) => Some(AxisRange::new(size, starts[index], ends[index], step)?),
            };
        }
        Ok(ranges)
    }

    fn axis(&self, named: i64, rank: usize) -> Result<usize, OperatorError> {
        let axis = normalise_axis(named, rank)?;
        match &self.renamed_axes {
            None => Ok(axis),
            Some(renamed) => renamed
                .get(axis)
                .copied()
                .filter(|&axis| axis < rank)
                .ok_or(OperatorError::Axis { axis: named, rank }),
        }
    }

    /// The bounds, where they are attributes or constants.
    pub fn constant_bounds(&self, inputs: &InputFacts<'_>) -> Option<SliceBounds> {
        if let Some(bounds) = &self.bounds {
            return Some(bounds.clone());
        }
        let optional = |index| match inputs.fact(index) {
            None => Some(None),
            Some(fact) => fact.constant_i64s().map(Some),
        };
        Some(SliceBounds {
            starts: inputs.constant_i64s(1)?,
            ends: inputs.constant_i64s(2)?,
            axes: optional(3)?,
            steps: optional(4)?,
        })
    }

    fn given_bounds(&self, inputs: &Inputs<'_>) -> Result<SliceBounds, OperatorError> {
        if let Some(bounds) = &self.bounds {
            return Ok(bounds.clone());
        }
        let optional = |index| {
            inputs.optional_tensor(index)?.map(|list| Ok(list.to_i64s()?.into_owned())).transpose()
        };
        Ok(SliceBounds {
            starts: inputs.tensor(1)?.to_i64s()?.into_owned(),
            ends: inputs.tensor(2)?.to_i64s()?.into_owned(),
            axes: optional(3)?,
            steps: optional(4)?,
        })
    }
}

impl Operator for Slice {
    fn name(&self) -> &'static str {
        "Slice"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let from: Vec<Option<usize>> = x.shape().iter().copied().map(Some).collect();
        let ranges = self.ranges(&from, &self.given_bounds(inputs)?)?;
        let ranges: Vec<AxisRange> = ranges.into_iter().flatten().collect();
        let shape = ranges.iter().map(|range| range.count).collect();
        Ok(vec![select(x, shape, |axis, index| ranges[axis].position(index))?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let Some(from) = inputs.dimensions(0) else {
            return Ok(vec![Fact::partial(inputs.data_type(0), None)]);
        };
        let dimensions = match self.constant_bounds(inputs) {
            Some(bounds) => self
                .ranges(from, &bounds)?
                .into_iter()
                .map(|range| range.map(|range| range.count))
                .collect(),
            None => {
                // Only the axes that are named can change.
                let mut dimensions = from.to_vec();
                match inputs.constant_i64s(3) {
                    Some(axes) => {
                        for axis in axes {
                            dimensions[self.axis(axis, from.len())?] = None;
                        }
                    }
                    None => dimensions.fill(None),
                }
                dimensions
            }
        };
        Ok(vec![Fact::partial(inputs.data_type(0), Some(dimensions))])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let renamed_axes = Some(renamed(self.renamed_axes.as_deref(), permutation)?);
        Some(Arc::new(Slice { renamed_axes, ..self.clone() }))
    }
}

/// The names of axes after one more permutation, for operators whose axes are inputs.
pub(super) fn renamed(before: Option<&[usize]>, permutation: &[usize]) -> Option<Vec<usize>> {
    (0..permutation.len())
        .map(|axis| {
            let axis = before.map_or(Some(axis), |before| before.get(axis).copied())?;
            permuted_axis(axis as i64, permutation).map(|axis| axis as usize)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;

    #[test]
    fn bounds_are_clamped_as_in_numpy() {
        let cases: [(i64, i64, i64, &[usize]); 12] = [
            (1, 3, 1, &[1, 2]),
            (-2, i64::MAX, 1, &[3, 4]),
            (0, 5, 2, &[0, 2, 4]),
            (4, 0, -2, &[4, 2]),
            (-1, i64::MIN, -1, &[4, 3, 2, 1, 0]),
            (10, -10, -3, &[4, 1]),
            (3, 3, 1, &[]),
            (4, 1, 1, &[]),
            (0, 4, -1, &[]),
            (-9, i64::MIN, -1, &[]),
            (0, i64::MAX, i64::MAX, &[0]),
            (4, i64::MIN, i64::MIN, &[4]),
        ];
        for (start, end, step, expected) in cases {
            let range = AxisRange::new(5, start, end, step).unwrap();
            let positions: Vec<usize> = (0..range.count).map(|i| range.position(i)).collect();
            assert_eq!(positions, expected, "{start}:{end}:{step}");
        }
        assert_eq!(AxisRange::new(0, 0, 5, -1).unwrap().count, 0);
        assert!(AxisRange::new(5, 0, 5, 0).is_err());
    }

    #[test]
    fn a_permuted_slice_takes_the_same_elements() {
        let x = Tensor::from_vec(vec![2, 3, 4], (0..24i64).collect()).unwrap();
        let bounds =
            SliceBounds { starts: vec![1], ends: vec![3], axes: Some(vec![-1]), steps: None };
        let slice = Slice { bounds: Some(bounds), renamed_axes: None };
        let run = |operator: &dyn Operator, x: &Tensor| {
            let values = [Some(Value::from(x.clone()))];
            operator.evaluate(&Inputs::new(&values, 1)).unwrap().remove(0).into_tensor().unwrap()
        };
        let turn = |x: &Tensor, by: &[usize]| super::super::transpose(x, by).unwrap();
        let (first, second) = ([2, 0, 1], [1, 0, 2]);
        let once = slice.permuted(&first).unwrap();
        let twice = once.permuted(&second).unwrap();
        let expected = turn(&turn(&run(&slice, &x), &first), &second);
        assert_eq!(run(&*twice, &turn(&turn(&x, &first), &second)), expected);
    }
}
