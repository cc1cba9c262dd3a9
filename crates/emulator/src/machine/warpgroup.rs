//! Products of four warps together: which of them were asked for, and by whom.

use std::ops::Range;

/// Warps of a warpgroup.
pub(super) const WARPS: usize = 4;

/// What four neighbouring warps multiply together. None of it has ended before all four have asked for it, and then it has for all
/// of them: so one of them may tell others that operands can be overwritten.
#[derive(Default)]
pub(super) struct Warpgroup {
    /// Groups of products that each of the warps has closed.
    closed: [u32; WARPS],
    products: Vec<Product>,
}

/// One warp's part of a product, whose operands must stay as they are until it is waited for.
pub(super) struct Product {
    group: u32,
    pub(super) operands: Vec<Operand>,
}

/// Rows of a tile in shared memory, and what was read there.
pub(super) struct Operand {
    pub(super) tile: u64,
    pub(super) rows: Range<usize>,
    pub(super) words: Vec<u64>,
}

impl Warpgroup {
    /// A warp asks for a product.
    pub(super) fn add(&mut self, warp: usize, operands: Vec<Operand>) {
        self.products.push(Product { group: self.closed[warp % WARPS], operands });
    }

    /// A warp closes a group of products.
    pub(super) fn close(&mut self, warp: usize) {
        self.closed[warp % WARPS] += 1;
    }

    /// The products that have ended when a warp has waited until so many of its groups are left; `None` while others have not asked
    /// for all of them.
    pub(super) fn end(&mut self, warp: usize, left: u32) -> Option<Vec<Product>> {
        let past = self.closed[warp % WARPS].saturating_sub(left);
        if self.closed.iter().any(|&closed| closed < past) {
            return None;
        }
        let (ended, going_on) =
            std::mem::take(&mut self.products).into_iter().partition(|it| it.group < past);
        self.products = going_on;
        Some(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_end_when_all_four_warps_have_asked_for_them() {
        let mut warpgroup = Warpgroup::default();
        let ask = |warpgroup: &mut Warpgroup, warp: usize| {
            warpgroup.add(warp, Vec::new());
            warpgroup.close(warp);
        };
        let ended = |warpgroup: &mut Warpgroup, warp: usize, left: u32| {
            warpgroup.end(warp, left).map(|ended| ended.len())
        };
        // Warps are numbered within their block.
        (4..7).for_each(|warp| ask(&mut warpgroup, warp));
        assert_eq!(ended(&mut warpgroup, 4, 0), None);
        assert_eq!(ended(&mut warpgroup, 4, 1), Some(0));
        assert_eq!(ended(&mut warpgroup, 7, 0), Some(0), "it has asked for nothing yet");
        ask(&mut warpgroup, 7);
        ask(&mut warpgroup, 4);
        assert_eq!(ended(&mut warpgroup, 4, 0), None);
        assert_eq!(ended(&mut warpgroup, 4, 1), Some(4));
        assert_eq!(ended(&mut warpgroup, 5, 0), Some(0), "it has ended for all of them");
        warpgroup.add(5, Vec::new());
        assert_eq!(ended(&mut warpgroup, 5, 0), Some(0), "its group is not closed");
    }
}
