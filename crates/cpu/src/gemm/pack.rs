//! Owns the copying of a matrix into panels.

use std::ops::Range;

use super::packed::WeightOrder;
use super::panels::{Panel, Panels};
use crate::SimdTask;
use crate::simd::Simd;

/// How many rows are copied for one panel before the next panel's turn.
const ROWS_PER_TURN: usize = 64;

/// A matrix to be packed, of the shape of the panels it goes to.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackSource<'a> {
    pub(super) data: &'a [f32],
    /// From one stored row to the next.
    pub(super) stride: usize,
    pub(super) order: WeightOrder,
}

/// Packs the panels with the given numbers into `target`, which starts with the first of them.
///
/// # Panics
///
/// If the source or the target is shorter than the panels need.
pub(super) fn pack_panels(
    source: &PackSource,
    panels: Panels,
    range: Range<usize>,
    target: &mut [f32],
) {
    if range.is_empty() || panels.depth() == 0 {
        return;
    }
    panels.isa().run(PackTask { source, panels, range, target });
}

struct PackTask<'a> {
    source: &'a PackSource<'a>,
    panels: Panels,
    range: Range<usize>,
    target: &'a mut [f32],
}

impl SimdTask for PackTask<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { source, panels, range, target } = self;
        let base = panels.panel(range.start).offset;
        let depth = panels.depth();
        let part = |panel: Panel| panel.offset - base..panel.offset - base + panel.width * depth;
        match source.order {
            WeightOrder::KByN => {
                for first in (0..depth).step_by(ROWS_PER_TURN) {
                    let rows = first..(first + ROWS_PER_TURN).min(depth);
                    for panel in range.clone().map(|index| panels.panel(index)) {
                        copy_rows(source, panels, panel, rows.clone(), &mut target[part(panel)]);
                    }
                }
            }
            WeightOrder::NByK => {
                for panel in range.map(|index| panels.panel(index)) {
                    transpose(simd, source, panels, panel, 1, &mut target[part(panel)]);
                }
            }
            WeightOrder::Filters { positions } => {
                for panel in range.map(|index| panels.panel(index)) {
                    transpose(simd, source, panels, panel, positions, &mut target[part(panel)]);
                }
            }
        }
    }
}

#[inline(always)]
fn copy_rows(
    source: &PackSource,
    panels: Panels,
    panel: Panel,
    rows: Range<usize>,
    target: &mut [f32],
) {
    let valid = panel.width.min(panels.columns() - panel.column);
    for row in rows {
        let start = row * source.stride + panel.column;
        let line = &mut target[row * panel.width..(row + 1) * panel.width];
        if valid == panel.width {
            line.copy_from_slice(&source.data[start..start + panel.width]);
        } else {
            line[..valid].copy_from_slice(&source.data[start..start + valid]);
            line[valid..].fill(0.0);
        }
    }
}

/// Packs a panel whose columns are rows in memory; value `i` of a stored row belongs to row `i % positions * (depth /
/// positions) + i / positions` of the panel.
#[inline(always)]
fn transpose<S: Simd>(
    simd: S,
    source: &PackSource,
    panels: Panels,
    panel: Panel,
    positions: usize,
    target: &mut [f32],
) {
    let (depth, width) = (panels.depth(), panel.width);
    let channels = depth / positions;
    let valid = width.min(panels.columns() - panel.column);
    assert!(target.len() >= depth * width);
    assert!(source.data.len() >= (panel.column + valid - 1) * source.stride + depth);
    let place = |item: usize| {
        if positions == 1 { item } else { item % positions * channels + item / positions }
    };
    let mut block = [0.0; 64];
    // Sixteen values are a cache line of every stored row, used up before it can be evicted.
    for line in (0..depth).step_by(16) {
        let items = line..(line + 16).min(depth);
        for column in (0..width).step_by(8) {
            let whole_columns = column + 8 <= valid;
            let mut item = items.start;
            while whole_columns && item + 8 <= items.end {
                let start = (panel.column + column) * source.stride + item;
                // SAFETY: columns up to `valid` and items up to `depth` are inside the source, which was checked above;
                // rows up to `depth` of `width` values are inside the target; the block has 64 values.
                unsafe {
                    let from = source.data.as_ptr().add(start);
                    if positions == 1 {
                        let to = target.as_mut_ptr().add(item * width + column);
                        simd.transpose_8x8(from, source.stride, to, width);
                    } else {
                        simd.transpose_8x8(from, source.stride, block.as_mut_ptr(), 8);
                        for (offset, values) in block.chunks_exact(8).enumerate() {
                            let row = place(item + offset);
                            let to = target.as_mut_ptr().add(row * width + column);
                            std::ptr::copy_nonoverlapping(values.as_ptr(), to, 8);
                        }
                    }
                }
                item += 8;
            }
            for item in item..items.end {
                let row = place(item);
                for column in column..column + 8 {
                    target[row * width + column] = if column < valid {
                        source.data[(panel.column + column) * source.stride + item]
                    } else {
                        0.0
                    };
                }
            }
        }
    }
}
