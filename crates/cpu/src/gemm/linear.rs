//! Owns products with a constant matrix behind one interface.

use std::sync::Arc;

use super::{Epilogue, PackedB, Residual, Rows, TileLimits, gemm};
use crate::{Activation, SharedOutput, Worker};

/// A product of so many rows with a packed matrix, and what is done to the result.
#[derive(Debug)]
pub struct Linear {
    /// The constant matrix.
    pub matrix: Arc<PackedB>,
    /// How the product is cut.
    pub limits: TileLimits,
    /// Rows of the left operand and of the result.
    pub rows: usize,
    /// One value per column.
    pub bias: Option<Vec<f32>>,
    /// Applied last.
    pub activation: Activation,
}

impl Linear {
    /// Computes `activation(input * matrix + bias + residual)`; all matrices are dense.
    ///
    /// # Safety
    ///
    /// All workers of the run make the same call, and nothing else accesses the output until all have returned.
    ///
    /// # Panics
    ///
    /// If a slice is too short, or the worker has another instruction set than the matrix was packed for.
    pub unsafe fn run(
        &self,
        worker: &Worker,
        input: &[f32],
        residual: Option<&[f32]>,
        output: SharedOutput<f32>,
    ) {
        let (depth, columns) = (self.matrix.depth(), self.matrix.columns());
        let left = Rows::new(input, self.rows, depth, depth);
        let residual =
            residual.map(|data| Residual { data, row_stride: columns, after_activation: false });
        let bias = self.bias.as_deref();
        let epilogue = Epilogue { bias, residual, activation: self.activation };
        // SAFETY: the caller's promise is the same.
        unsafe { gemm(worker, &left, &self.matrix, &self.limits, output, columns, &epilogue) }
    }
}
