//! MatMulInteger and QLinearMatMul: matrix products of quantised numbers.

use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::linear::MatMul;
use crate::operators::linear::mat_mul::product_of_stacks;
use crate::tensor::Tensor;
use crate::value::Value;

use super::number;
use super::zero_point::{centred, centred_integers, spread};

/// The axis of a left factor's rows, which its parameters belong to.
fn row_axis(rank: usize) -> usize {
    rank.saturating_sub(2)
}

/// The axis of a right factor's columns; a vector is one column, and has none.
fn column_axis(rank: usize) -> usize {
    rank.saturating_sub(1)
}

/// What is known of the product of two inputs.
fn infer_product(
    inputs: &InputFacts<'_>,
    [left, right]: [usize; 2],
    data_type: Option<DataType>,
) -> Result<Vec<Fact>, OperatorError> {
    let facts = [inputs.fact(left), inputs.fact(right)];
    let product = MatMul.infer(&InputFacts::new(&facts, 1))?;
    Ok(product.into_iter().map(|fact| Fact { data_type, ..fact }).collect())
}

fn product_flops(inputs: &InputFacts<'_>, [left, right]: [usize; 2], outputs: &[Fact]) -> u64 {
    MatMul.flops(&InputFacts::new(&[inputs.fact(left), inputs.fact(right)], 1), outputs)
}

/// The product as 32-bit integers.
#[derive(Debug)]
struct MatMulInteger;

pub(super) fn build_integer(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(MatMulInteger))
}

impl Operator for MatMulInteger {
    fn name(&self) -> &'static str {
        "MatMulInteger"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (a, b) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let left = centred_integers(a, inputs.optional_tensor(2)?, row_axis(a.rank()))?;
        let right = centred_integers(b, inputs.optional_tensor(3)?, column_axis(b.rank()))?;
        let (shape, sums) = product_of_stacks(&left, a.shape(), &right, b.shape(), DataType::I32)?;
        Ok(vec![Tensor::from_vec(shape, sums)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        infer_product(inputs, [0, 1], Some(DataType::I32))
    }

    fn flops(&self, inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        product_flops(inputs, [0, 1], outputs)
    }
}

/// The product, quantised again.
#[derive(Debug)]
struct QLinearMatMul;

pub(super) fn build_quantised(
    _source: &NodeSource<'_>,
) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(QLinearMatMul))
}

impl Operator for QLinearMatMul {
    fn name(&self) -> &'static str {
        "QLinearMatMul"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (a, b) = (inputs.tensor(0)?, inputs.tensor(3)?);
        let (a_scale, b_scale, y_scale) = (inputs.tensor(1)?, inputs.tensor(4)?, inputs.tensor(6)?);
        let y_zero = inputs.tensor(7)?;
        let left = centred(a, Some(inputs.tensor(2)?), row_axis(a.rank()))?;
        let right = centred(b, Some(inputs.tensor(5)?), column_axis(b.rank()))?;
        // Sums of 8-bit products are exact in f64, whether they come from integers or from narrow floats.
        let (shape, sums) = product_of_stacks(&left, a.shape(), &right, b.shape(), DataType::F64)?;

        let rows = row_axis(shape.len());
        let a_scales = spread(a_scale, &shape, rows)?;
        let b_scales = spread(b_scale, &shape, column_axis(shape.len()))?;
        let y_scales = spread(y_scale, &shape, rows)?;
        let y_zeros = spread(y_zero, &shape, rows)?;
        let round = |number| number::rounded(number, a_scale.data_type());
        let numbers = sums.iter().zip(&y_zeros).enumerate().map(|(index, (sum, &zero))| {
            let factor = round(round(a_scales[index] * b_scales[index]) / y_scales[index]);
            (sum * factor, zero)
        });
        Ok(vec![number::write(shape.clone(), y_zero.data_type(), numbers, true)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        infer_product(inputs, [0, 3], inputs.data_type(7))
    }

    fn flops(&self, inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        product_flops(inputs, [0, 3], outputs)
    }
}
