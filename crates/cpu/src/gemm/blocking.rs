//! Owns how a product is cut: into parts of the sum, groups of rows, and tiles that workers claim.

use std::ops::Range;

use super::kernel::MOST_ROWS;
use super::panels::Panels;
use super::parameters::{RowCopies, TileLimits};
use crate::Isa;

/// How a product is cut. The cut of the sum depends on the shape and the limits alone, never on the workers, so neither do
/// the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocking {
    rows: usize,
    depth: usize,
    panel_count: usize,
    is_single_row: bool,
    /// Terms per part of the sum.
    part_depth: usize,
    group_count: usize,
    tile_groups: usize,
    tile_panels: usize,
    /// Whether rows are copied closer together before they are multiplied.
    copies_rows: bool,
}

impl Blocking {
    /// Cuts `rows` rows of a product for `workers` workers. `stride` is from one of them to the next, in values, where they
    /// lie in memory. `is_single_row` says that the whole product has only one: then its sum is computed in another order,
    /// which must not happen to one row among many.
    pub(super) fn new(
        panels: Panels,
        rows: usize,
        stride: Option<usize>,
        is_single_row: bool,
        workers: usize,
        limits: &TileLimits,
    ) -> Self {
        let depth = panels.depth();
        let part_depth = if is_single_row {
            depth.max(1)
        } else {
            depth.div_ceil(depth.div_ceil(limits.depth.max(1)).max(1)).next_multiple_of(4).max(4)
        };
        let group_count = rows.div_ceil(group_rows(panels));
        let panel_count = panels.count();
        let panel_values = part_depth.min(limits.depth) * panels.full_width();
        let tile_panels = panel_count.min((limits.panel_values / panel_values.max(1)).max(1));
        let tile_groups = group_count.min((limits.rows / group_rows(panels)).max(1));
        let mut blocking = Self {
            rows,
            depth,
            panel_count,
            is_single_row,
            part_depth,
            group_count,
            tile_groups,
            tile_panels,
            copies_rows: stride.is_none_or(|stride| match limits.copies {
                RowCopies::AsNeeded => part_depth < depth && would_collide(stride),
                RowCopies::Always => true,
                RowCopies::Never => false,
            }),
        };
        blocking.even_out();
        if workers > 1 {
            while blocking.tile_count() < workers * limits.tiles_per_worker
                && blocking.split(panels)
            {}
        }
        blocking
    }

    /// Halves the side of the tile whose operand is cheaper to read again; false if the tile is as small as can be.
    fn split(&mut self, panels: Panels) -> bool {
        let tile_rows = self.tile_groups * group_rows(panels);
        let tile_columns = self.tile_panels * panels.full_width();
        let by_columns = tile_columns >= 2 * tile_rows;
        if self.tile_panels > 1 && (by_columns || self.tile_groups == 1) {
            self.tile_panels = self.tile_panels.div_ceil(2);
        } else if self.tile_groups > 1 {
            self.tile_groups = self.tile_groups.div_ceil(2);
        } else {
            return false;
        }
        true
    }

    /// Makes all tiles nearly the same size without making more of them.
    fn even_out(&mut self) {
        if self.group_count > 0 && self.panel_count > 0 {
            self.tile_groups =
                self.group_count.div_ceil(self.group_count.div_ceil(self.tile_groups));
            self.tile_panels =
                self.panel_count.div_ceil(self.panel_count.div_ceil(self.tile_panels));
        }
    }

    pub(super) fn tile_count(self) -> usize {
        if self.group_count == 0 || self.panel_count == 0 {
            return 0;
        }
        self.group_count.div_ceil(self.tile_groups) * self.panel_count.div_ceil(self.tile_panels)
    }

    /// The groups and panels of a tile; neighbouring tiles share rows.
    pub(super) fn tile(self, index: usize) -> (Range<usize>, Range<usize>) {
        let across = self.panel_count.div_ceil(self.tile_panels);
        let (down, across) = (index / across * self.tile_groups, index % across * self.tile_panels);
        let groups = down..(down + self.tile_groups).min(self.group_count);
        (groups, across..(across + self.tile_panels).min(self.panel_count))
    }

    /// The parts of the sum; a sum of nothing has one part, so that its result is still stored.
    pub(super) fn parts(self) -> impl Iterator<Item = Range<usize>> {
        let count = self.depth.div_ceil(self.part_depth).max(1);
        (0..count).map(move |part| {
            let start = part * self.part_depth;
            start..(start + self.part_depth).min(self.depth)
        })
    }

    /// The rows of a group; groups differ by one row at most, so that no kernel is left with a single one.
    pub(super) fn group(self, index: usize) -> Range<usize> {
        let (each, extra) = (self.rows / self.group_count, self.rows % self.group_count);
        let start = |index: usize| index * each + index.min(extra);
        start(index)..start(index + 1)
    }

    pub(super) fn copies_rows(self) -> bool {
        self.copies_rows
    }

    pub(super) fn tile_panels(self) -> usize {
        self.tile_panels
    }

    /// Rows of a tile, at most.
    pub(super) fn tile_rows(self, panels: Panels) -> usize {
        (self.tile_groups * group_rows(panels)).min(self.rows)
    }

    pub(super) fn is_single_row(self) -> bool {
        self.is_single_row
    }

    pub(super) fn part_depth(self) -> usize {
        self.part_depth
    }
}

/// How many rows a group has at most.
fn group_rows(panels: Panels) -> usize {
    match panels.isa() {
        Isa::Portable => 4,
        Isa::Avx2 if panels.are_single_vectors() => MOST_ROWS,
        Isa::Avx2 => 6,
        Isa::Avx512 => MOST_ROWS,
    }
}

/// Whether parts of rows that are so many values apart fall on the same few places of the first-level cache: those that are
/// a multiple of a quarter of a page apart do.
fn would_collide(stride: usize) -> bool {
    (stride * size_of::<f32>()).is_multiple_of(1024)
}
