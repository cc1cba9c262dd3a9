//! AffineGrid: the points that affine matrices send an evenly spaced grid to.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

#[derive(Clone, Debug)]
struct AffineGrid {
    /// The grid's extremes are the centres of the corner elements instead of their outer corners.
    align_corners: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let align_corners = source.attributes.int_or("align_corners", 0)? != 0;
    Ok(Arc::new(AffineGrid { align_corners }))
}

/// The output's shape for images of the given shape.
fn grid_shape(size: &[i64]) -> Result<Vec<usize>, OperatorError> {
    let sizes: Option<Vec<usize>> = size.iter().map(|&size| usize::try_from(size).ok()).collect();
    match sizes.as_deref() {
        Some([batch, _, spatial @ ..]) if matches!(spatial.len(), 2 | 3) => {
            Ok([&[*batch], spatial, &[spatial.len()]].concat())
        }
        _ => Err(OperatorError::Invalid(format!("a grid for images of shape {size:?}"))),
    }
}

impl AffineGrid {
    fn coordinate(&self, index: usize, size: usize) -> f64 {
        let (index, size) = (index as f64, size as f64);
        match self.align_corners {
            true if size == 1.0 => -1.0,
            true => 2.0 * index / (size - 1.0) - 1.0,
            false => (2.0 * index + 1.0) / size - 1.0,
        }
    }
}

impl Operator for AffineGrid {
    fn name(&self) -> &'static str {
        "AffineGrid"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let theta = inputs.tensor(0)?;
        let shape = grid_shape(&inputs.tensor(1)?.to_i64s()?)?;
        let count = checked_count(&shape, theta.data_type())?;
        let spatial = &shape[1..shape.len() - 1];
        let rank = spatial.len();
        if theta.shape() != [shape[0], rank, rank + 1] {
            return Err(OperatorError::Shapes { left: theta.shape().to_vec(), right: shape });
        }
        let matrices = theta.to_f64s()?;
        let mut grid = Vec::with_capacity(count);
        for matrix in matrices.chunks_exact(rank * (rank + 1)) {
            for position in 0..spatial.iter().product::<usize>() {
                // Innermost axis first, then the 1 that the translation is multiplied by.
                let mut point = Vec::with_capacity(rank + 1);
                let mut rest = position;
                for &size in spatial.iter().rev() {
                    point.push(self.coordinate(rest % size, size));
                    rest /= size;
                }
                point.push(1.0);
                grid.extend(
                    matrix
                        .chunks_exact(rank + 1)
                        .map(|row| row.iter().zip(&point).map(|(a, b)| a * b).sum::<f64>()),
                );
            }
        }
        Ok(vec![Tensor::from_f64s(shape, theta.data_type(), grid)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let shape = inputs.constant_i64s(1).map(|size| grid_shape(&size)).transpose()?;
        let dimensions = shape.map(|shape| shape.into_iter().map(Some).collect());
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }
}
