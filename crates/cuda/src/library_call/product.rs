//! Matrix products as cuBLASLt sees them: column by column.

use super::CallActivation;
use crate::Precision;
use crate::kernels::gemm::{GemmProblem, Left};

/// A matrix whose columns are contiguous, or a stack of such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnMatrix {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// From column to column.
    pub(crate) stride: usize,
    /// From matrix to matrix; 0 where there is one for all.
    pub(crate) step: usize,
}

/// `output = activation(first * second + bias of every row + residual)`, for each of a stack of products. The residual
/// lies as the output does.
///
/// A matrix whose rows are contiguous is, column by column, its transpose. So what a [`GemmProblem`] calls right comes
/// first, and its output is the transpose of that of the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Product {
    pub(crate) first: ColumnMatrix,
    /// The first matrix is transposed before it is multiplied.
    pub(crate) is_first_transposed: bool,
    pub(crate) second: ColumnMatrix,
    pub(crate) output: ColumnMatrix,
    pub(crate) stack: usize,
    pub(crate) has_bias: bool,
    pub(crate) has_residual: bool,
    pub(crate) activation: CallActivation,
    pub(crate) precision: Precision,
    /// How many SMs the algorithm is chosen for.
    pub(crate) sm_count: u32,
    /// Which of the algorithms that the library suggests, in its own order.
    pub(crate) rank: usize,
}

impl Product {
    /// The product of a problem; `None` where cuBLASLt would compute something else, or nothing.
    pub(crate) fn of(problem: &GemmProblem, sm_count: u32) -> Option<Self> {
        let &GemmProblem { m, n, k, stack, stack_steps, right, .. } = problem;
        let Left::Matrix { stride: left_stride } = problem.left else { return None };
        if !problem.is_supported() || (problem.has_residual && stack > 1) {
            return None;
        }
        let [left_step, right_step, output_step] = stack_steps;
        let (rows, columns) = if right.by_rows { (n, k) } else { (k, n) };
        Some(Self {
            first: ColumnMatrix { rows, columns, stride: right.stride, step: right_step },
            is_first_transposed: !right.by_rows,
            second: ColumnMatrix { rows: k, columns: m, stride: left_stride, step: left_step },
            output: ColumnMatrix { rows: n, columns: m, stride: n, step: output_step },
            stack,
            has_bias: problem.bias.is_some(),
            has_residual: problem.has_residual,
            activation: CallActivation::of(problem.activation)?,
            precision: problem.precision,
            sm_count,
            rank: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use weft_ir::Activation;

    use super::*;
    use crate::Storage;
    use crate::kernels::gemm::Right;

    fn problem(by_rows: bool, stack: usize) -> GemmProblem {
        let (m, n, k) = (3, 5, 4);
        let (left_stride, right_stride) = (6, 8);
        let right_rows = if by_rows { k } else { n };
        GemmProblem {
            m,
            n,
            k,
            stack,
            // The left matrix is one for all of the stack.
            stack_steps: [0, right_rows * right_stride, m * n],
            left: Left::Matrix { stride: left_stride },
            right: Right { by_rows, stride: right_stride, is_weights: false },
            bias: Some(Storage::F32),
            has_residual: stack == 1,
            activation: Some(Activation::Relu),
            precision: Precision::F32,
        }
    }

    /// What cuBLASLt's documentation says that it computes, on integers.
    fn call(product: &Product, first: &[i64], second: &[i64], bias: &[i64], z: &[i64]) -> Vec<i64> {
        let at = |matrix: &ColumnMatrix, index: usize, row: usize, column: usize| {
            assert!(row < matrix.rows && column < matrix.columns && matrix.rows <= matrix.stride);
            index * matrix.step + column * matrix.stride + row
        };
        let inner = product.second.rows;
        let mut output = vec![i64::MIN; product.stack * product.output.step];
        for index in 0..product.stack {
            for column in 0..product.output.columns {
                for (row, bias) in bias.iter().enumerate() {
                    let term = |k: usize| {
                        let (r, c) = if product.is_first_transposed { (k, row) } else { (row, k) };
                        first[at(&product.first, index, r, c)]
                            * second[at(&product.second, index, k, column)]
                    };
                    let to = at(&product.output, index, row, column);
                    let residual = if product.has_residual { z[to] } else { 0 };
                    output[to] = ((0..inner).map(term).sum::<i64>() + residual + bias).max(0);
                }
            }
        }
        output
    }

    #[test]
    fn products_column_by_column_are_those_row_by_row() {
        let numbers = |count: usize, seed: usize| -> Vec<i64> {
            (0..count).map(|index| ((index * 37 + seed * 11) % 13) as i64 - 6).collect()
        };
        for (by_rows, stack) in [(false, 1), (true, 1), (true, 3), (false, 2)] {
            let problem = problem(by_rows, stack);
            let product = Product::of(&problem, 8).unwrap();
            let [_, right_step, output_step] = problem.stack_steps;
            let (left, right) = (numbers(3 * 6, 1), numbers(stack * right_step, 2));
            let (bias, residual) = (numbers(problem.n, 3), numbers(output_step, 4));
            let mut expected = Vec::new();
            for index in 0..stack {
                for m in 0..problem.m {
                    for (n, bias) in bias.iter().enumerate() {
                        let term = |k: usize| {
                            let place = if by_rows { k * 8 + n } else { n * 8 + k };
                            left[m * 6 + k] * right[index * right_step + place]
                        };
                        let sum = (0..problem.k).map(term).sum::<i64>() + bias;
                        let more = if stack == 1 { residual[m * problem.n + n] } else { 0 };
                        expected.push((sum + more).max(0));
                    }
                }
            }
            let actual = call(&product, &right, &left, &bias, &residual);
            assert_eq!(actual, expected, "by rows {by_rows}, stack of {stack}");
        }
    }

    #[test]
    fn what_the_library_would_compute_differently_is_refused() {
        let with = |activation| GemmProblem { activation, ..problem(false, 1) };
        let product = |activation| Product::of(&with(activation), 8);
        assert_eq!(product(None).unwrap().activation, CallActivation::None);
        let tanh = product(Some(Activation::GeluTanh)).unwrap();
        assert_eq!(tanh.activation, CallActivation::GeluTanh);
        for refused in [
            Activation::Gelu,
            Activation::Silu,
            Activation::HardSwish,
            Activation::Clip { min: 0.0, max: 6.0 },
        ] {
            assert!(product(Some(refused)).is_none(), "{refused:?}");
        }
        assert!(Product::of(&GemmProblem { m: 0, ..problem(false, 1) }, 8).is_none());
    }
}
