//! Owns where the left operand of a product comes from: memory as it is, or rows gathered on the way.

use std::ops::Range;

use super::extent;

/// An M by K matrix that is read row by row.
pub trait RowSource: Sync {
    /// M.
    fn rows(&self) -> usize;

    /// K.
    fn columns(&self) -> usize;

    /// The matrix in memory, if it lies there as it is; then nothing has to be copied.
    fn in_memory(&self) -> Option<Rows<'_>> {
        None
    }

    /// Copies a block of the matrix: element `(r, c)` of the block goes to `target[r * target_stride + c]`.
    ///
    /// `target` has room for `(rows.len() - 1) * target_stride + columns.len()` values or more; the gaps between the
    /// rows are free to be overwritten. The ranges are not empty and lie inside the matrix.
    fn copy_block(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        target: &mut [f32],
        target_stride: usize,
    );
}

/// A matrix in memory.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    stride: usize,
}

impl<'a> Rows<'a> {
    /// `rows` by `columns` values; row `r` starts at `r * stride`.
    ///
    /// # Panics
    ///
    /// If `data` is too short for that.
    pub fn new(data: &'a [f32], rows: usize, columns: usize, stride: usize) -> Self {
        let extent = extent(rows, columns, stride);
        assert!(
            extent.is_some_and(|extent| extent <= data.len()),
            "left operand of a product is too short"
        );
        Self { data, rows, columns, stride }
    }

    pub(super) fn data(&self) -> &'a [f32] {
        self.data
    }

    pub(super) fn stride(&self) -> usize {
        self.stride
    }
}

impl RowSource for Rows<'_> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn in_memory(&self) -> Option<Rows<'_>> {
        Some(*self)
    }

    fn copy_block(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        target: &mut [f32],
        target_stride: usize,
    ) {
        let width = columns.len();
        for (index, row) in rows.enumerate() {
            let start = row * self.stride + columns.start;
            let target_start = index * target_stride;
            target[target_start..target_start + width]
                .copy_from_slice(&self.data[start..start + width]);
        }
    }
}
