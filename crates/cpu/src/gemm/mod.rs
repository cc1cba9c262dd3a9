//! Owns matrix multiplication: packed weights, register kernels, and what is done to a result before it is stored.

mod blocking;
mod epilogue;
mod finish;
mod kernel;
mod linear;
mod matmul;
mod pack;
mod packed;
mod panels;
mod parameters;
mod rows;
mod space;
mod tile;

pub use epilogue::{Epilogue, Residual};
pub use linear::Linear;
pub use matmul::{BatchItem, MatMul, matmul};
pub use packed::{PackError, PackedB, WeightMatrix, WeightOrder};
pub use parameters::{
    GemmCut, GemmParameters, GemmShape, PanelWidth, RowCopies, Share, TileLimits,
};
pub use rows::{RowSource, Rows};

use crate::{SharedOutput, Worker};
use blocking::Blocking;
use tile::Product;

/// Computes `output = epilogue(a * b)`; all workers of a run call it alike and leave together.
///
/// `a` is M by K, `b` is K by N, and row `r` of the result starts at `r * output_stride`. `limits` say how the product is cut;
/// the bits of the result depend on them, and do not depend on the number of workers.
///
/// # Safety
///
/// All workers of the run make the same call, and nothing else accesses the output until all have returned.
///
/// # Panics
///
/// If the shapes do not fit together, or `b` was packed for another instruction set than the worker's.
pub unsafe fn gemm<A: RowSource + ?Sized>(
    worker: &Worker,
    a: &A,
    b: &PackedB,
    limits: &TileLimits,
    output: SharedOutput<f32>,
    output_stride: usize,
    epilogue: &Epilogue,
) {
    let panels = b.panels();
    assert_eq!(panels.isa(), worker.isa(), "weights packed for another instruction set");
    assert_eq!(a.columns(), panels.depth(), "inner dimensions of a product");
    let extent = extent(a.rows(), panels.columns(), output_stride);
    assert!(
        extent.is_some_and(|extent| extent <= output.len()),
        "output of a product is too short"
    );
    epilogue.check(a.rows(), panels.columns());
    let blocking = Blocking::new(
        panels,
        a.rows(),
        a.in_memory().map(|rows| rows.stride()),
        a.rows() == 1,
        worker.count(),
        limits,
    );
    let product = Product {
        a,
        b: b.data(),
        panels,
        blocking,
        output: output.as_mut_ptr(),
        output_stride,
        epilogue,
        residual_offset: 0,
    };
    worker.parallel(blocking.tile_count(), |tile| {
        // SAFETY: the extents were checked above, and every tile is one task's alone.
        unsafe { product.compute_tile(worker, tile) }
    });
}

/// How many values a matrix reaches over, if rows do not overlap and the number can be represented.
fn extent(rows: usize, columns: usize, stride: usize) -> Option<usize> {
    if rows == 0 || columns == 0 {
        return Some(0);
    }
    if rows > 1 && stride < columns {
        return None;
    }
    (rows - 1).checked_mul(stride)?.checked_add(columns)
}

#[cfg(test)]
mod tests;
