//! Owns what can be varied in a product without changing what it computes, and how that is written.

use std::fmt;

use super::blocking::Blocking;
use super::panels::Panels;
use crate::Isa;

/// How a product is computed: how its constant operand is packed, and how it is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GemmParameters {
    /// How wide the panels of the packed operand are.
    pub width: PanelWidth,
    /// How the product is cut.
    pub limits: TileLimits,
}

/// How many columns a panel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PanelWidth {
    /// As many as the register kernels of the instruction set can hold.
    #[default]
    Full,
    /// As many as a vector has lanes.
    OneVector,
}

/// When rows of the left operand that lie in memory are copied closer together before they are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RowCopies {
    /// Where they would compete for the same places of the first-level cache.
    #[default]
    AsNeeded,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How finely a product is cut at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TileLimits {
    /// The most terms summed before partial results are stored: a group of rows must stay in the first-level cache.
    pub depth: usize,
    /// How many rows a tile has at most: its results stay in the second-level cache between parts of the sum.
    pub rows: usize,
    /// How many values of the packed operand a tile may use in one go: they stay in the second-level cache.
    pub panel_values: usize,
    /// How many tiles each worker should find, so that none waits long for the last.
    pub tiles_per_worker: usize,
    /// Which rows are copied.
    pub copies: RowCopies,
}

impl Default for TileLimits {
    fn default() -> Self {
        Self {
            depth: 512,
            rows: 240,
            panel_values: 128 * 1024,
            tiles_per_worker: 4,
            copies: RowCopies::AsNeeded,
        }
    }
}

/// The shape of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GemmShape {
    /// M: rows of the left operand and of the result.
    pub rows: usize,
    /// K: what the product sums over.
    pub depth: usize,
    /// N: columns of the result.
    pub columns: usize,
    /// From one row of the left operand to the next, in values, where it lies in memory.
    pub stride: Option<usize>,
}

/// How parameters cut a product of one shape; equal for parameters that make no difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GemmCut {
    panels: Panels,
    blocking: Blocking,
}

/// How work is shared out among workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// How many tasks there are.
    pub tasks: usize,
    /// How many values a task works on in one go.
    pub values: usize,
}

impl GemmCut {
    /// How the product is shared out: a task is a tile, and works on one part of the sum at a time.
    pub fn share(&self) -> Share {
        let (rows, columns, depth) = (self.tile_rows(), self.tile_columns(), self.part_depth());
        Share { tasks: self.tiles(), values: (rows + columns) * depth + rows * columns }
    }

    /// How many tiles there are.
    pub fn tiles(&self) -> usize {
        self.blocking.tile_count()
    }

    /// Terms of every part of the sum but the last.
    pub fn part_depth(&self) -> usize {
        self.blocking.part_depth()
    }

    /// Columns of every tile but those at the end.
    pub fn tile_columns(&self) -> usize {
        self.blocking.tile_panels() * self.panels.full_width()
    }

    /// Rows of every tile but those at the end, at most.
    pub fn tile_rows(&self) -> usize {
        self.blocking.tile_rows(self.panels)
    }

    /// Whether rows are copied before they are multiplied.
    pub fn copies_rows(&self) -> bool {
        self.blocking.copies_rows()
    }
}

impl GemmParameters {
    /// How the parameters cut a product.
    pub fn cut(&self, isa: Isa, shape: &GemmShape, workers: usize) -> GemmCut {
        let panels = Panels::new(isa, self.width, shape.depth, shape.columns);
        let GemmShape { rows, stride, .. } = *shape;
        let blocking = Blocking::new(panels, rows, stride, rows == 1, workers, &self.limits);
        GemmCut { panels, blocking }
    }
}

impl fmt::Display for GemmParameters {
    /// Every parameter that is a number, and the others where they are not the usual ones.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TileLimits { depth, rows, panel_values, tiles_per_worker, copies } = self.limits;
        let panels = panel_values / 1024;
        write!(formatter, "depth {depth} rows {rows} panels {panels}k tiles {tiles_per_worker}")?;
        if self.width == PanelWidth::OneVector {
            formatter.write_str(" one vector")?;
        }
        match copies {
            RowCopies::AsNeeded => Ok(()),
            RowCopies::Always => formatter.write_str(" copied"),
            RowCopies::Never => formatter.write_str(" in place"),
        }
    }
}
