//! Owns the computation of one tile of a product: the loops around the register kernels.

use std::ops::Range;
use std::ptr::null;

use super::blocking::Blocking;
use super::epilogue::Epilogue;
use super::finish::BlockFinish;
use super::kernel::{KernelCall, MOST_ROWS, RegisterFinish, multiply_rows, multiply_single_row};
use super::panels::{NARROW, Panel, Panels};
use super::rows::RowSource;
use crate::simd::Simd;
use crate::{Activation, Isa, SimdTask, Worker};

/// Added to the stride of copied rows, so that they do not compete for the same places of the cache.
const STRIDE_GAP: usize = 16;

/// The widest panel of any instruction set.
const MOST_WIDTH: usize = 32;

/// A product whose extents have been checked.
pub(super) struct Product<'a, A: ?Sized> {
    pub(super) a: &'a A,
    /// The right operand, packed.
    pub(super) b: &'a [f32],
    pub(super) panels: Panels,
    pub(super) blocking: Blocking,
    /// Where the result starts.
    pub(super) output: *mut f32,
    pub(super) output_stride: usize,
    pub(super) epilogue: &'a Epilogue<'a>,
    /// Where in the residual the element that belongs to the first of the result is.
    pub(super) residual_offset: usize,
}

// SAFETY: the pointer is used only through `compute_tile`, whose callers keep tiles apart.
unsafe impl<A: Sync + ?Sized> Sync for Product<'_, A> {}

impl<A: RowSource + ?Sized> Product<'_, A> {
    /// Computes the tile with the given number.
    ///
    /// # Safety
    ///
    /// The output, the bias and the residual cover the whole product, and no one else uses the tile meanwhile.
    pub(super) unsafe fn compute_tile(&self, worker: &Worker, tile: usize) {
        let (groups, panels) = self.blocking.tile(tile);
        let stride = self.blocking.part_depth() + STRIDE_GAP;
        let copies = self.blocking.copies_rows();
        let mut scratch = worker.scratch(if copies { MOST_ROWS * stride } else { 0 });
        let copy = copies.then_some(Copy { target: &mut scratch, stride });
        worker.isa().run(TileTask { product: self, groups, panels, copy });
    }
}

/// Where rows are copied to.
struct Copy<'a> {
    target: &'a mut [f32],
    stride: usize,
}

/// Made only by [`Product::compute_tile`], whose caller vouches for the pointers.
struct TileTask<'a, A: ?Sized> {
    product: &'a Product<'a, A>,
    groups: Range<usize>,
    panels: Range<usize>,
    copy: Option<Copy<'a>>,
}

impl<A: RowSource + ?Sized> SimdTask for TileTask<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let product = self.product;
        let in_memory = product.a.in_memory();
        for part in product.blocking.parts() {
            for group in self.groups.clone() {
                let rows = product.blocking.group(group);
                let (a, a_stride) = match (&mut self.copy, &in_memory) {
                    (Some(copy), _) => {
                        if !part.is_empty() {
                            product.a.copy_block(
                                rows.clone(),
                                part.clone(),
                                copy.target,
                                copy.stride,
                            );
                        }
                        (copy.target.as_ptr(), copy.stride)
                    }
                    (None, Some(source)) => {
                        let start = rows.start * source.stride() + part.start;
                        (source.data()[start.min(source.data().len())..].as_ptr(), source.stride())
                    }
                    (None, None) => unreachable!("rows that are not in memory are copied"),
                };
                for panel in self.panels.clone().map(|index| product.panels.panel(index)) {
                    let block =
                        Block { rows: rows.clone(), part: part.clone(), panel, a, a_stride };
                    // SAFETY: `a` holds the rows and the part; the maker of the task vouches for the rest.
                    unsafe { product.compute_block(simd, &block) }
                }
            }
        }
    }
}

/// One use of a register kernel.
struct Block {
    rows: Range<usize>,
    part: Range<usize>,
    panel: Panel,
    a: *const f32,
    a_stride: usize,
}

impl<A: RowSource + ?Sized> Product<'_, A> {
    /// # Safety
    ///
    /// As for [`Product::compute_tile`], and `block.a` is valid for its rows and part.
    #[inline(always)]
    unsafe fn compute_block<S: Simd>(&self, simd: S, block: &Block) {
        let Block { rows, part, panel, .. } = block;
        let columns = panel.width.min(self.panels.columns() - panel.column);
        let is_last = part.end == self.panels.depth();
        let epilogue = self.epilogue;
        let b = self.b[panel.offset + part.start * panel.width..].as_ptr();
        let start = rows.start * self.output_stride + panel.column;
        // SAFETY: the caller vouches for the output, the bias and the residual; the block lies inside the product.
        unsafe {
            let c = self.output.add(start);
            let bias = epilogue.bias.map_or(null(), |bias| bias.as_ptr().add(panel.column));
            let (residual, residual_stride, residual_last) = match epilogue.residual {
                None => (null(), 0, false),
                Some(residual) => {
                    let start =
                        self.residual_offset + rows.start * residual.row_stride + panel.column;
                    (
                        residual.data.as_ptr().add(start),
                        residual.row_stride,
                        residual.after_activation,
                    )
                }
            };
            let mut call = KernelCall {
                depth: part.len(),
                a: block.a,
                a_stride: block.a_stride,
                b,
                c,
                c_stride: self.output_stride,
                accumulate: part.start > 0,
                finish: None,
            };
            let mut rest = BlockFinish {
                rows: rows.len(),
                columns,
                source: c,
                source_stride: self.output_stride,
                target: c,
                target_stride: self.output_stride,
                accumulate: false,
                bias: null(),
                residual,
                residual_stride,
                residual_last,
                activation: epilogue.activation,
            };
            if columns < panel.width {
                // Padding must not reach the result, so the kernel stores the sums elsewhere.
                let mut sums = [0.0; MOST_ROWS * MOST_WIDTH];
                (call.c, call.c_stride) = (sums.as_mut_ptr(), panel.width);
                rest.accumulate = std::mem::take(&mut call.accumulate);
                (rest.source, rest.source_stride) = (sums.as_ptr(), panel.width);
                self.multiply(simd, block, call);
                if is_last {
                    rest.bias = bias;
                } else {
                    rest.residual = null();
                    rest.activation = Activation::None;
                }
                rest.run(simd);
            } else if !is_last {
                self.multiply(simd, block, call);
            } else if epilogue.activation.as_range().is_some()
                || epilogue.activation == Activation::HardSwish
            {
                let is_hard_swish = epilogue.activation == Activation::HardSwish;
                let is_none = epilogue.activation == Activation::None;
                let range = epilogue.activation.as_range().filter(|_| !is_none);
                let finish = RegisterFinish {
                    bias,
                    residual,
                    residual_stride,
                    residual_last,
                    range,
                    is_hard_swish,
                };
                call.finish = Some(&finish);
                self.multiply(simd, block, call);
            } else {
                let finish = RegisterFinish {
                    bias,
                    residual: null(),
                    residual_stride: 0,
                    residual_last: false,
                    range: None,
                    is_hard_swish: false,
                };
                call.finish = Some(&finish);
                self.multiply(simd, block, call);
                rest.run(simd);
            }
        }
    }

    /// # Safety
    ///
    /// The pointers of `call` are valid for the rows and the width of the block.
    #[inline(always)]
    unsafe fn multiply<S: Simd>(&self, simd: S, block: &Block, call: KernelCall) {
        debug_assert!(block.panel.width <= self.panels.full_width());
        let rows = block.rows.len();
        let is_single = self.blocking.is_single_row();
        let is_narrow = self.panels.isa() == Isa::Avx512 && block.panel.width == NARROW;
        // SAFETY: the caller's promise.
        unsafe {
            match (is_single, is_narrow) {
                (false, false) => multiply_rows(simd, rows, block.panel.width / S::LANES, call),
                (false, true) => multiply_rows(simd.narrow(), rows, 1, call),
                (true, false) => multiply_single_row(simd, block.panel.width / S::LANES, call),
                (true, true) => multiply_single_row(simd.narrow(), 1, call),
            }
        }
    }
}
