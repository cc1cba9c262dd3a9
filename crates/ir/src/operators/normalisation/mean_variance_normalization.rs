//! MeanVarianceNormalization: elements brought to mean 0 and variance 1 over given axes.

use std::sync::Arc;

use super::channels::permuted_axis;
use crate::axis::normalise_axes;
use crate::broadcast::strided_indices;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, strides};
use crate::value::Value;

/// Added to the standard deviation, as the standard's own definition has it.
const EPSILON: f64 = 1e-9;

#[derive(Clone, Debug)]
struct MeanVarianceNormalization {
    axes: Vec<i64>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let axes = source.attributes.ints("axes")?.unwrap_or(&[0, 2, 3]).to_vec();
    Ok(Arc::new(MeanVarianceNormalization { axes }))
}

impl Operator for MeanVarianceNormalization {
    fn name(&self) -> &'static str {
        "MeanVarianceNormalization"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let mut kept = x.shape().to_vec();
        for axis in normalise_axes(&self.axes, x.rank())? {
            kept[axis] = 1;
        }
        let steps: Vec<usize> = strides(&kept)
            .into_iter()
            .zip(&kept)
            .map(|(step, &size)| if size == 1 { 0 } else { step })
            .collect();
        let groups = strided_indices(x.shape(), &steps, 0);
        let mut elements = x.to_f64s()?;
        let count = kept.iter().product::<usize>();
        let per_group = (elements.len() / count.max(1)) as f64;
        let means = |values: &dyn Fn(usize, f64) -> f64| {
            let mut sums = vec![0.0; count];
            for (&group, &x) in groups.iter().zip(&elements) {
                sums[group] += values(group, x);
            }
            sums.into_iter().map(|sum| sum / per_group).collect::<Vec<_>>()
        };
        let mean = means(&|_, x| x);
        let variance = means(&|group, x| (x - mean[group]).powi(2));
        for (&group, x) in groups.iter().zip(&mut elements) {
            *x = (*x - mean[group]) / (variance[group].sqrt() + EPSILON);
        }
        Ok(vec![Tensor::from_f64s(x.shape().to_vec(), x.data_type(), elements)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let axes = normalise_axes(&self.axes, permutation.len()).ok()?;
        let moved = axes.into_iter().map(|axis| permuted_axis(permutation, axis).map(|a| a as i64));
        Some(Arc::new(MeanVarianceNormalization { axes: moved.collect::<Option<_>>()? }))
    }
}
