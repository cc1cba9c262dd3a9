//! Owns the computation of one tile of a product: the loops around the register kernels.

use std::ops::Range;
use std::ptr::null;

use super::blocking::Blocking;
use super::epilogue::Epilogue;
use super::finish::BlockFinish;
use super::kernel::{KernelCall, MOST_ROWS, RegisterFinish, multiply_rows, multiply_single_row};
use super::panels::{NARROW, Panel, Panels};
use super::parameters::LoopOrder;
use super::rows::RowSource;
use crate::simd::Simd;
use crate::{Activation, Isa, SimdTask, Worker};

/// Added to the stride of copied rows, so that they do not compete for the same places of the cache.
const STRIDE_GAP: usize = 16;

/// Values of a cache line.
const LINE_VALUES: usize = 16;

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
        let copied_groups = match (self.blocking.copies_rows(), self.blocking.loops()) {
            (false, _) => 0,
            (true, LoopOrder::RowsOutside) => 1,
            (true, LoopOrder::PanelsOutside) => groups.len(),
        };
        let mut scratch = worker.scratch(copied_groups * MOST_ROWS * stride);
        let copy = (copied_groups > 0).then_some(Copy { target: &mut scratch, stride });
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
        let panels_outside = product.blocking.loops() == LoopOrder::PanelsOutside;
        let (groups, panels) = (self.groups.len(), self.panels.len());
        let (outer, inner) = if panels_outside { (panels, groups) } else { (groups, panels) };
        for part in product.blocking.parts() {
            for outer in 0..outer {
                let mut rows = GroupRows { range: 0..0, start: null(), stride: 0 };
                for inner in 0..inner {
                    let (panel, group) =
                        if panels_outside { (outer, inner) } else { (inner, outer) };
                    if panels_outside {
                        rows = self.rows(&part, group, group, panel == 0);
                        self.prefetch_next_panel(simd, &part, panel, group);
                    } else if panel == 0 {
                        rows = self.rows(&part, group, 0, true);
                    }
                    let block = Block {
                        rows: rows.range.clone(),
                        part: part.clone(),
                        panel: product.panels.panel(self.panels.start + panel),
                        a: rows.start,
                        a_stride: rows.stride,
                    };
                    // SAFETY: the rows hold the part; the maker of the task vouches for the rest.
                    unsafe { product.compute_block(simd, &block) }
                }
            }
        }
    }
}

/// Where a part of a group's rows lies.
struct GroupRows {
    range: Range<usize>,
    start: *const f32,
    stride: usize,
}

impl<A: RowSource + ?Sized> TileTask<'_, A> {
    /// A part of the rows of a group of the tile. Where rows are copied they lie in the given place, and are copied there if
    /// they are not yet.
    #[inline(always)]
    fn rows(&mut self, part: &Range<usize>, group: usize, place: usize, is_new: bool) -> GroupRows {
        let product = self.product;
        let range = product.blocking.group(self.groups.start + group);
        match (&mut self.copy, product.a.in_memory()) {
            (Some(copy), _) => {
                let target = &mut copy.target[place * MOST_ROWS * copy.stride..];
                if is_new && !part.is_empty() {
                    product.a.copy_block(range.clone(), part.clone(), target, copy.stride);
                }
                GroupRows { range, start: target.as_ptr(), stride: copy.stride }
            }
            (None, Some(source)) => {
                let start = range.start * source.stride() + part.start;
                let start = source.data()[start.min(source.data().len())..].as_ptr();
                GroupRows { range, start, stride: source.stride() }
            }
            (None, None) => unreachable!("rows that are not in memory are copied"),
        }
    }

    /// Asks for the share of the next panel that falls to a group, so that it is there when its turn comes.
    #[inline(always)]
    fn prefetch_next_panel<S: Simd>(
        &self,
        simd: S,
        part: &Range<usize>,
        panel: usize,
        group: usize,
    ) {
        if panel + 1 == self.panels.len() {
            return;
        }
        let next = self.product.panels.panel(self.panels.start + panel + 1);
        let values = part.len() * next.width;
        let groups = self.groups.len();
        let start = next.offset + part.start * next.width;
        let share = values * group / groups..values * (group + 1) / groups;
        for value in share.step_by(LINE_VALUES) {
            simd.prefetch(self.product.b.as_ptr().wrapping_add(start + value));
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
