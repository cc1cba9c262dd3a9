//! Owns the geometry of a packed matrix: panels of columns, each stored row after row.

use super::parameters::PanelWidth;
use crate::Isa;

/// The width of the narrowest panel.
pub(super) const NARROW: usize = 8;

/// How a K by N matrix is cut into panels for an instruction set.
///
/// A panel holds as many columns as a register kernel produces. What is left at the end goes to narrower panels, so that
/// at most seven columns are padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Panels {
    isa: Isa,
    full_width: usize,
    depth: usize,
    columns: usize,
}

/// Some neighbouring columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Panel {
    /// The first column.
    pub(super) column: usize,
    /// How many columns it stores, padding included.
    pub(super) width: usize,
    /// Where its values start in the packed matrix.
    pub(super) offset: usize,
}

/// The width of all panels but the last.
pub(super) fn full_width(isa: Isa, width: PanelWidth) -> usize {
    match (width, isa) {
        (PanelWidth::OneVector, _) => isa.lanes(),
        (PanelWidth::Full, Isa::Portable) => 8,
        (PanelWidth::Full, Isa::Avx2) => 16,
        (PanelWidth::Full, Isa::Avx512) => 32,
    }
}

impl Panels {
    pub(super) fn new(isa: Isa, width: PanelWidth, depth: usize, columns: usize) -> Self {
        Self { isa, full_width: full_width(isa, width), depth, columns }
    }

    /// The width of all panels but the last.
    pub(super) fn full_width(self) -> usize {
        self.full_width
    }

    pub(super) fn isa(self) -> Isa {
        self.isa
    }

    /// K.
    pub(super) fn depth(self) -> usize {
        self.depth
    }

    /// N.
    pub(super) fn columns(self) -> usize {
        self.columns
    }

    /// The widths of the panels after the full ones; zero where there is none.
    fn tail_widths(self) -> [usize; 2] {
        let lanes = self.isa.lanes();
        let rest = self.columns % self.full_width;
        let whole = rest / lanes * lanes;
        match rest - whole {
            0 => [whole, 0],
            over if over <= NARROW && lanes > NARROW && whole > 0 => [whole, NARROW],
            over if over <= NARROW && lanes > NARROW => [NARROW, 0],
            _ => [whole + lanes, 0],
        }
    }

    /// How many panels there are.
    pub(super) fn count(self) -> usize {
        let tail = self.tail_widths().iter().filter(|&&width| width > 0).count();
        self.columns / self.full_width + tail
    }

    /// The panel with the given number.
    pub(super) fn panel(self, index: usize) -> Panel {
        let full_width = self.full_width;
        let full = self.columns / full_width;
        let (column, width) = match index.checked_sub(full) {
            None => (index * full_width, full_width),
            Some(0) => (full * full_width, self.tail_widths()[0]),
            Some(_) => (full * full_width + self.tail_widths()[0], self.tail_widths()[1]),
        };
        Panel { column, width, offset: column * self.depth }
    }

    /// How many values the packed matrix has, if that can be represented.
    pub(super) fn elements(self) -> Option<usize> {
        let width: usize = self.tail_widths().iter().sum();
        let full = self.columns / self.full_width * self.full_width;
        full.checked_add(width)?.checked_mul(self.depth)
    }

    /// Whether no panel is wider than one vector.
    pub(super) fn are_single_vectors(self) -> bool {
        self.columns.min(self.full_width) <= self.isa.lanes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_cover_the_columns_with_little_padding() {
        let widths = [PanelWidth::Full, PanelWidth::OneVector];
        for (isa, width) in Isa::ALL.into_iter().flat_map(|isa| widths.map(|width| (isa, width))) {
            for columns in 0..200 {
                let panels = Panels::new(isa, width, 3, columns);
                let mut next = 0;
                for index in 0..panels.count() {
                    let panel = panels.panel(index);
                    assert_eq!((panel.column, panel.offset), (next, next * 3));
                    assert!(panel.width == NARROW || panel.width.is_multiple_of(isa.lanes()));
                    assert!(panel.column < columns);
                    next += panel.width;
                }
                assert_eq!(panels.elements(), Some(next * 3));
                assert!(next >= columns && next - columns < NARROW, "{isa:?} {columns}: {next}");
            }
        }
        assert_eq!(Panels::new(Isa::Avx512, PanelWidth::Full, 1, 24).count(), 2);
        assert_eq!(Panels::new(Isa::Avx512, PanelWidth::Full, usize::MAX / 2, 24).elements(), None);
        assert_eq!(Panels::new(Isa::Avx512, PanelWidth::Full, 2, usize::MAX).elements(), None);
    }
}
