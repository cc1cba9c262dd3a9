//! Owns the part of an epilogue that is not done in registers: costly activations, and panels with padding.

use crate::simd::Simd;
use crate::{Activation, SimdTask};

/// Completes a block of results: reads sums, adds, activates and stores. Strides are in values.
#[derive(Clone, Copy)]
pub(super) struct BlockFinish {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// The sums; they may be the result itself.
    pub(super) source: *const f32,
    pub(super) source_stride: usize,
    pub(super) target: *mut f32,
    pub(super) target_stride: usize,
    /// Whether to add what the result already holds.
    pub(super) accumulate: bool,
    /// One value per column, or null.
    pub(super) bias: *const f32,
    /// Rows like those of the result, or null.
    pub(super) residual: *const f32,
    pub(super) residual_stride: usize,
    pub(super) residual_last: bool,
    pub(super) activation: Activation,
}

impl BlockFinish {
    /// Does the work.
    ///
    /// # Safety
    ///
    /// All pointers that are not null are valid for the rows and columns.
    #[inline(always)]
    pub(super) unsafe fn run<S: Simd>(self, simd: S) {
        simd.enter(FinishTask(self));
    }
}

/// Made only by [`BlockFinish::run`], whose caller vouches for the pointers.
struct FinishTask(BlockFinish);

impl SimdTask for FinishTask {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let block = self.0;
        for row in 0..block.rows {
            for column in (0..block.columns).step_by(S::LANES) {
                let count = S::LANES.min(block.columns - column);
                // SAFETY: `row` and `column .. column + count` are inside the block, whose operands the maker vouches for.
                unsafe {
                    let mut value =
                        load(simd, block.source.add(row * block.source_stride + column), count);
                    if block.accumulate {
                        value = simd.add(
                            value,
                            load(simd, block.target.add(row * block.target_stride + column), count),
                        );
                    }
                    if !block.bias.is_null() {
                        value = simd.add(value, load(simd, block.bias.add(column), count));
                    }
                    if !block.residual.is_null() && !block.residual_last {
                        value = simd.add(
                            value,
                            load(
                                simd,
                                block.residual.add(row * block.residual_stride + column),
                                count,
                            ),
                        );
                    }
                    value = block.activation.apply(simd, value);
                    if !block.residual.is_null() && block.residual_last {
                        value = simd.add(
                            value,
                            load(
                                simd,
                                block.residual.add(row * block.residual_stride + column),
                                count,
                            ),
                        );
                    }
                    simd.store_partial(
                        block.target.add(row * block.target_stride + column),
                        value,
                        count,
                    );
                }
            }
        }
    }
}

/// # Safety
///
/// `source` is valid for reading `count` values, and there are no more than lanes.
#[inline(always)]
unsafe fn load<S: Simd>(simd: S, source: *const f32, count: usize) -> S::F32 {
    // SAFETY: the caller's promise.
    unsafe { if count == S::LANES { simd.load(source) } else { simd.load_partial(source, count) } }
}
