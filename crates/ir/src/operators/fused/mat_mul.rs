//! FusedMatMul: a matrix product with one matrix on the right, its bias and its epilogue.

use super::epilogue::Epilogue;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, Operator};
use crate::operators::linear::product::{accumulate_product, transposed};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// Rows `[..., K]` of `f32` times a matrix `[K, N]`, plus a bias `[N]` or none, plus a residual where the epilogue has one.
#[derive(Clone, Debug)]
pub struct FusedMatMul {
    /// The matrix is stored as `[N, K]`.
    pub transpose_right: bool,
    /// What follows the product.
    pub epilogue: Epilogue,
}

impl FusedMatMul {
    /// `(K, N)` of the matrix.
    pub fn matrix_size(&self, matrix: &[usize]) -> Option<(usize, usize)> {
        match *matrix {
            [n, k] if self.transpose_right => Some((k, n)),
            [k, n] => Some((k, n)),
            _ => None,
        }
    }
}

impl Operator for FusedMatMul {
    fn name(&self) -> &'static str {
        "FusedMatMul"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (left, right) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let misfit =
            || OperatorError::Shapes { left: left.shape().to_vec(), right: right.shape().to_vec() };
        let (k, n) = self.matrix_size(right.shape()).ok_or_else(misfit)?;
        let Some((&columns, stack)) = left.shape().split_last() else { return Err(misfit()) };
        if columns != k {
            return Err(misfit());
        }
        let mut shape = stack.to_vec();
        shape.push(n);
        let count = checked_count(&shape, DataType::F32)?;
        let mut product = match inputs.optional_tensor(2)? {
            None => vec![0.0; count],
            Some(bias) if bias.len() == n => {
                bias.elements::<f32>()?.iter().copied().cycle().take(count).collect()
            }
            Some(bias) => {
                return Err(OperatorError::Shapes { left: vec![n], right: bias.shape().to_vec() });
            }
        };
        let matrix = right.elements::<f32>()?;
        let turned = if self.transpose_right { transposed(matrix, n, k) } else { Vec::new() };
        let matrix = if self.transpose_right { &turned } else { matrix };
        if n > 0 {
            accumulate_product(left.elements::<f32>()?, matrix, &mut product, k, n);
        }
        let product = Tensor::from_vec(shape, product)?;
        Ok(vec![self.epilogue.apply(product, inputs.optional_tensor(3)?)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let n = inputs.shape(1).and_then(|matrix| self.matrix_size(&matrix)).map(|(_, n)| n);
        let dimensions = inputs.dimensions(0).and_then(|left| {
            let (_, stack) = left.split_last()?;
            Some(stack.iter().copied().chain([n]).collect())
        });
        Ok(vec![Fact::partial(Some(DataType::F32), dimensions)])
    }

    fn flops(&self, inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        let k = inputs.shape(0).and_then(|left| left.last().copied()).unwrap_or(0);
        let count = outputs.first().and_then(Fact::element_count).unwrap_or(0);
        2 * (k as u64) * (count as u64)
    }
}
