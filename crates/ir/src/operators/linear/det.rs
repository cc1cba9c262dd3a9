//! Det: the determinant of each matrix of a stack.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

#[derive(Clone, Debug)]
struct Det;

pub(super) fn build(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Det))
}

/// The determinant by Gaussian elimination with the largest pivot of each column.
fn determinant(mut matrix: Vec<f64>, size: usize) -> f64 {
    let mut product = 1.0;
    for column in 0..size {
        let largest = (column..size).max_by(|&a, &b| {
            let [a, b] = [a, b].map(|row| matrix[row * size + column].abs());
            a.total_cmp(&b)
        });
        let Some(pivot) = largest else { return product };
        let value = matrix[pivot * size + column];
        if value == 0.0 {
            return 0.0;
        }
        if pivot != column {
            (0..size).for_each(|c| matrix.swap(pivot * size + c, column * size + c));
            product = -product;
        }
        product *= value;
        for row in column + 1..size {
            let factor = matrix[row * size + column] / value;
            for c in column..size {
                matrix[row * size + c] -= factor * matrix[column * size + c];
            }
        }
    }
    product
}

impl Operator for Det {
    fn name(&self) -> &'static str {
        "Det"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let (stack, size) = match x.shape() {
            [stack @ .., rows, columns] if rows == columns => (stack, *rows),
            other => {
                return Err(OperatorError::Invalid(format!("determinants of shape {other:?}")));
            }
        };
        let count = checked_count(stack, x.data_type())?;
        let elements = x.to_f64s()?;
        let area = size * size;
        let determinants = (0..count)
            .map(|index| determinant(elements[index * area..][..area].to_vec(), size))
            .collect();
        Ok(vec![Tensor::from_f64s(stack.to_vec(), x.data_type(), determinants)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let stack = inputs.dimensions(0).map(|x| x[..x.len().saturating_sub(2)].to_vec());
        Ok(vec![Fact::partial(inputs.data_type(0), stack)])
    }
}
