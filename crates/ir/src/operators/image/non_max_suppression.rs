//! NonMaxSuppression: of boxes that overlap too much, the one with the best score.

use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

#[derive(Clone, Debug)]
struct NonMaxSuppression {
    /// Boxes are given as centre, width and height instead of two corners.
    center_point_box: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let center_point_box = source.attributes.int_or("center_point_box", 0)? != 0;
    Ok(Arc::new(NonMaxSuppression { center_point_box }))
}

/// A box by its least and greatest coordinates along both axes.
#[derive(Clone, Copy, Debug)]
struct Corners {
    low: [f32; 2],
    high: [f32; 2],
}

impl Corners {
    fn new([a, b, c, d]: [f32; 4], center_point_box: bool) -> Self {
        if center_point_box {
            Self { low: [a - c / 2.0, b - d / 2.0], high: [a + c / 2.0, b + d / 2.0] }
        } else {
            Self { low: [a.min(c), b.min(d)], high: [a.max(c), b.max(d)] }
        }
    }

    fn area(&self) -> f32 {
        (self.high[0] - self.low[0]) * (self.high[1] - self.low[1])
    }

    /// The area of the intersection over that of the union; 0 where either has none.
    fn overlap(&self, other: &Self) -> f32 {
        let along = |axis: usize| {
            let end = self.high[axis].min(other.high[axis]);
            (end - self.low[axis].max(other.low[axis])).max(0.0)
        };
        let intersection = along(0) * along(1);
        let union = self.area() + other.area() - intersection;
        if intersection > 0.0 && union > 0.0 { intersection / union } else { 0.0 }
    }
}

fn scalar(inputs: &Inputs<'_>, index: usize) -> Result<Option<f32>, OperatorError> {
    match inputs.optional_tensor(index)? {
        None => Ok(None),
        Some(tensor) => Ok(tensor.to_f32s()?.first().copied()),
    }
}

impl Operator for NonMaxSuppression {
    fn name(&self) -> &'static str {
        "NonMaxSuppression"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (boxes, scores) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let (batch, classes, count) = match (boxes.shape(), scores.shape()) {
            (&[batch, count, 4], &[scored_batch, classes, scored])
                if batch == scored_batch && count == scored =>
            {
                (batch, classes, count)
            }
            (left, right) => {
                return Err(OperatorError::Shapes { left: left.to_vec(), right: right.to_vec() });
            }
        };
        let most = match inputs.optional_tensor(2)? {
            None => 0,
            Some(most) => most.to_i64s()?.first().map_or(0, |&most| most.max(0) as usize),
        };
        let overlap_threshold = scalar(inputs, 3)?.unwrap_or(0.0);
        let score_threshold = scalar(inputs, 4)?.unwrap_or(f32::NEG_INFINITY);
        let (boxes, scores) = (boxes.to_f32s()?, scores.to_f32s()?);
        let corners: Vec<Corners> = boxes
            .chunks_exact(4)
            .map(|b| Corners::new([b[0], b[1], b[2], b[3]], self.center_point_box))
            .collect();
        let mut selected = Vec::new();
        let rows = if count == 0 { 0 } else { batch * classes };
        for row in 0..rows {
            let (image, class) = (row / classes, row % classes);
            let corners = &corners[image * count..][..count];
            let scores = &scores[row * count..][..count];
            let mut candidates: Vec<usize> =
                (0..count).filter(|&index| scores[index] > score_threshold).collect();
            candidates.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            let mut kept: Vec<usize> = Vec::new();
            for candidate in candidates {
                if kept.len() >= most {
                    break;
                }
                let clear = |&other: &usize| {
                    corners[candidate].overlap(&corners[other]) <= overlap_threshold
                };
                if kept.iter().all(clear) {
                    kept.push(candidate);
                    selected.extend([image as i64, class as i64, candidate as i64]);
                }
            }
            checked_count(&[selected.len()], DataType::I64)?;
        }
        Ok(vec![Tensor::from_vec(vec![selected.len() / 3, 3], selected)?.into()])
    }

    fn infer(&self, _inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![Fact::partial(Some(DataType::I64), Some(vec![None, Some(3)]))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_without_area_overlap_nothing() {
        let unit = Corners::new([1.0, 1.0, 0.0, 0.0], false);
        let half = Corners::new([0.5, 0.25, 1.0, 0.5], true);
        let point = Corners::new([0.5, 0.5, 0.5, 0.5], false);
        assert_eq!(unit.overlap(&half), 0.5);
        assert_eq!(unit.overlap(&point), 0.0);
        assert_eq!(point.overlap(&point), 0.0);
    }
}
