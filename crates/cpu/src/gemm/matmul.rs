//! Owns products of two matrices that are both made at run time, one or many at once.

use super::blocking::Blocking;
use super::epilogue::Epilogue;
use super::extent;
use super::pack::{PackSource, pack_panels};
use super::packed::WeightOrder;
use super::panels::{Panels, full_width};
use super::parameters::{PanelWidth, TileLimits};
use super::rows::Rows;
use super::tile::Product;
use crate::{SharedOutput, Worker};

/// How many values of the right operand are packed in one go: they stay in the second-level cache.
const STRIP_VALUES: usize = 192 * 1024;

/// How many tasks each worker should find, so that none waits long for the last.
const TASKS_PER_WORKER: usize = 3;

/// Many products of the same shape.
#[derive(Debug, Clone, Copy)]
pub struct MatMul<'a> {
    /// Where in the buffers the matrices of each product start.
    pub items: &'a [BatchItem],
    /// M: rows of the left operand and of the result.
    pub rows: usize,
    /// K: what a product sums over.
    pub depth: usize,
    /// N: columns of the result.
    pub columns: usize,
    /// The left operands, M rows of K.
    pub a: &'a [f32],
    /// From one row of a left operand to the next, in values.
    pub a_stride: usize,
    /// The right operands, K rows of N, or N rows of K.
    pub b: &'a [f32],
    /// From one stored row of a right operand to the next, in values.
    pub b_stride: usize,
    /// Whether the right operands are stored as N rows of K.
    pub b_transposed: bool,
    /// Multiplies every product before the epilogue.
    pub scale: f32,
    /// From one row of a result to the next, in values.
    pub output_stride: usize,
    /// What is done to the results.
    pub epilogue: Epilogue<'a>,
}

/// Where the matrices of one product start, in values from the start of their buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchItem {
    /// The left operand.
    pub a: usize,
    /// The right operand.
    pub b: usize,
    /// The result; also the place in the residual.
    pub output: usize,
}

/// Computes the products into `output`; all workers of a run call it alike and leave together.
///
/// The bits of the results do not depend on the number of workers. Results of different items must not overlap.
///
/// # Safety
///
/// All workers of the run make the same call, and nothing else accesses the output until all have returned.
///
/// # Panics
///
/// If the buffers are too short for the shapes.
pub unsafe fn matmul(worker: &Worker, products: &MatMul, output: SharedOutput<f32>) {
    let MatMul { rows, depth, columns, .. } = *products;
    products.check(output.len());
    if rows == 0 || columns == 0 {
        return;
    }
    let isa = worker.isa();
    let strip_columns = products.strip_columns(worker);
    let strips = columns.div_ceil(strip_columns);
    let cut = products.row_cuts(worker, strips);
    let row_cut = rows.div_ceil(cut);
    let cuts = rows.div_ceil(row_cut);
    worker.parallel(products.items.len() * strips * cuts, |task| {
        let (item, strip, cut) =
            (products.items[task / (strips * cuts)], task / cuts % strips, task % cuts);
        let first_column = strip * strip_columns;
        let first_row = cut * row_cut;
        let width = strip_columns.min(columns - first_column);
        let height = row_cut.min(rows - first_row);
        let panels = Panels::new(isa, PanelWidth::Full, depth, width);
        let mut packed = worker.scratch(panels.elements().expect("a strip of a matrix in memory"));
        let (order, start) = match products.b_transposed {
            true => (WeightOrder::NByK, item.b + first_column * products.b_stride),
            false => (WeightOrder::KByN, item.b + first_column),
        };
        let source = PackSource {
            data: &products.b[start.min(products.b.len())..],
            stride: products.b_stride,
            order,
        };
        pack_panels(&source, panels, 0..panels.count(), &mut packed);
        if products.scale != 1.0 {
            packed.iter_mut().for_each(|value| *value *= products.scale);
        }
        let offset = first_row * products.output_stride + first_column;
        let epilogue = Epilogue {
            bias: products.epilogue.bias.map(|bias| &bias[first_column..]),
            ..products.epilogue
        };
        let residual_stride = epilogue.residual.map_or(0, |residual| residual.row_stride);
        let a_start = item.a + first_row * products.a_stride;
        let a = Rows::new(
            &products.a[a_start.min(products.a.len())..],
            height,
            depth,
            products.a_stride,
        );
        let blocking = Blocking::new(
            panels,
            height,
            Some(products.a_stride),
            rows == 1,
            1,
            &TileLimits::default(),
        );
        let product = Product {
            a: &a,
            b: &packed,
            panels,
            blocking,
            // SAFETY: `check` found the result inside the output.
            output: unsafe { output.as_mut_ptr().add(item.output + offset) },
            output_stride: products.output_stride,
            epilogue: &epilogue,
            residual_offset: item.output + first_row * residual_stride + first_column,
        };
        for tile in 0..blocking.tile_count() {
            // SAFETY: the extents were checked, and this strip of these rows is this task's alone.
            unsafe { product.compute_tile(worker, tile) }
        }
    });
}

impl MatMul<'_> {
    fn check(&self, output_elements: usize) {
        let (b_rows, b_columns) =
            if self.b_transposed { (self.columns, self.depth) } else { (self.depth, self.columns) };
        let fits = |offset: usize, rows, columns, stride, elements| {
            extent(rows, columns, stride)
                .and_then(|extent| extent.checked_add(offset))
                .is_some_and(|end| end <= elements)
        };
        for item in self.items {
            assert!(
                fits(item.a, self.rows, self.depth, self.a_stride, self.a.len()),
                "left operand is too short"
            );
            assert!(
                fits(item.b, b_rows, b_columns, self.b_stride, self.b.len()),
                "right operand is too short"
            );
            assert!(
                fits(item.output, self.rows, self.columns, self.output_stride, output_elements),
                "output of a product is too short"
            );
            self.epilogue.check_at(item.output, self.rows, self.columns);
        }
    }

    /// How many columns one task packs.
    fn strip_columns(&self, worker: &Worker) -> usize {
        let width = full_width(worker.isa(), PanelWidth::Full);
        let fitting = (STRIP_VALUES / self.depth.max(1) / width).max(1);
        let panels = self.columns.div_ceil(width);
        let mut strip = panels.div_ceil(panels.div_ceil(fitting));
        if worker.count() > 1 {
            // Narrower strips make more tasks without packing anything twice.
            let wanted = worker.count() * TASKS_PER_WORKER;
            while self.items.len() * panels.div_ceil(strip) < wanted && strip > 2 {
                strip = strip.div_ceil(2);
            }
        }
        strip * width
    }

    /// Into how many parts the rows are cut; each packs its strip again.
    fn row_cuts(&self, worker: &Worker, strips: usize) -> usize {
        /// Fewer rows would spend more time on packing than on the product.
        const LEAST_ROWS: usize = 48;
        let tasks = (self.items.len() * strips).max(1);
        let wanted = (worker.count() * TASKS_PER_WORKER).div_ceil(tasks);
        if worker.count() == 1 || tasks.is_multiple_of(worker.count()) {
            return 1;
        }
        wanted.min(self.rows / LEAST_ROWS).max(1)
    }
}
