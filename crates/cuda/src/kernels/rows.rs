//! How rows of contiguous elements are spread over warps and blocks.

use super::widening::widening;
use crate::{Chip, Storage};

/// The most elements of a row that one thread keeps in registers.
const MAX_ELEMENTS_PER_THREAD: usize = 64;
/// The most warps of a block whose warps have a row each.
const MAX_WARPS: usize = 4;

/// Rows of which each thread of a warp, or of a block, reads whole vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) storage: Storage,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

/// A warp for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WarpPerRow {
    pub(crate) width: usize,
    /// What each thread reads.
    pub(crate) vectors: usize,
    pub(crate) threads: u32,
    pub(crate) blocks: u32,
}

/// A block for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockPerRow {
    pub(crate) width: usize,
    pub(crate) threads: u32,
}

impl Rows {
    fn width(&self) -> usize {
        widening(self.storage, [self.columns])
    }

    /// A warp for each row; `None` where a thread cannot keep its part.
    pub(crate) fn warp_per_row(&self, chip: Chip) -> Option<WarpPerRow> {
        let width = self.width();
        let vectors = self.columns.div_ceil(32 * width);
        if vectors * width > MAX_ELEMENTS_PER_THREAD {
            return None;
        }
        // Few rows go to many SMs, not to many warps of one.
        let warps = (self.rows / chip.sm_count as usize).clamp(1, MAX_WARPS);
        let blocks = self.rows.div_ceil(warps) as u32;
        Some(WarpPerRow { width, vectors, threads: 32 * warps as u32, blocks })
    }

    /// A block for each row.
    pub(crate) fn block_per_row(&self) -> BlockPerRow {
        let width = self.width();
        let vectors = self.columns.div_ceil(width);
        let threads = match vectors {
            0..=128 => 128,
            129..=1024 => 256,
            _ => 512,
        };
        BlockPerRow { width, threads }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_go_to_many_blocks() {
        let rows = |rows| Rows { storage: Storage::F16, rows, columns: 768 };
        let of_bert = rows(128).warp_per_row(Chip::H200).unwrap();
        assert_eq!((of_bert.width, of_bert.vectors), (8, 3));
        assert_eq!((of_bert.threads, of_bert.blocks), (32, 128));
        let many = rows(1024).warp_per_row(Chip::H200).unwrap();
        assert_eq!((many.threads, many.blocks), (128, 256));
        assert_eq!(rows(128).warp_per_row(Chip::H200.with_sms(8)).unwrap().blocks, 32);
    }

    #[test]
    fn every_element_is_read() {
        for columns in [1, 7, 31, 33, 100, 768, 1000, 1023, 1024] {
            let rows = Rows { storage: Storage::F16, rows: 5, columns };
            if let Some(warp) = rows.warp_per_row(Chip::H200) {
                assert!(warp.vectors * warp.width * 32 >= columns);
                assert_eq!(columns % warp.width, 0);
            }
        }
        let odd = Rows { storage: Storage::F16, rows: 5, columns: 30_523 };
        assert_eq!(odd.warp_per_row(Chip::H200), None);
        assert_eq!(odd.block_per_row(), BlockPerRow { width: 1, threads: 512 });
    }
}
