//! Tiles: how much one block computes, and with how many warps.

use crate::Chip;

/// What multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Multiplier {
    /// Each warp by itself: `mma.sync`.
    Warp,
    /// Four warps together, straight from shared memory: Hopper's `wgmma`.
    Warpgroup,
}

/// The tile of one block, and how it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) warps_m: usize,
    pub(super) warps_n: usize,
    /// Steps of k in shared memory at once.
    pub(super) stages: usize,
    pub(super) multiplier: Multiplier,
    /// Whole tiles are brought by Hopper's copy engine, where the layout of the operands allows it.
    pub(super) is_bulk: bool,
}

/// Bytes of k that one step covers, of each row.
pub(super) const ROW_BYTES: usize = 128;

/// Every tile that is compiled, small ones first.
pub(super) const TILES: &[Tile] = &[
    by_warps(16, 32, [1, 2], 6),
    by_warps(16, 64, [1, 4], 6),
    by_warps(16, 128, [1, 4], 4),
    by_warps(32, 32, [2, 2], 6),
    by_warps(32, 64, [2, 2], 6),
    by_warps(64, 32, [2, 2], 6),
    by_warps(64, 64, [2, 2], 4),
    by_warps(64, 64, [2, 2], 6),
    by_warps(128, 32, [4, 1], 5),
    by_warps(32, 128, [1, 4], 5),
    by_warps(64, 128, [2, 2], 4),
    by_warps(128, 64, [2, 2], 4),
    by_warps(128, 128, [2, 4], 4),
    by_warps(128, 256, [2, 4], 3),
    by_warps(256, 128, [4, 2], 3),
    by_warps(256, 64, [4, 1], 4),
    by_warpgroups(64, 64, 1, 3),
    by_warpgroups(64, 64, 1, 4),
    by_warpgroups(64, 64, 1, 6),
    by_warpgroups(64, 128, 1, 3),
    by_warpgroups(64, 128, 1, 4),
    by_warpgroups(64, 128, 1, 6),
    by_warpgroups(64, 256, 1, 4),
    by_warpgroups(128, 64, 2, 3),
    by_warpgroups(128, 64, 2, 4),
    by_warpgroups(128, 64, 2, 6),
    by_warpgroups(128, 128, 2, 3),
    by_warpgroups(128, 128, 2, 4),
    by_warpgroups(128, 128, 2, 6),
    by_warpgroups(128, 256, 2, 4),
    by_warpgroups(192, 128, 3, 4),
    by_warpgroups(256, 64, 2, 4),
    by_warpgroups(256, 128, 2, 4),
    by_warpgroups(256, 128, 4, 4),
];

const fn by_warps(m: usize, n: usize, warps: [usize; 2], stages: usize) -> Tile {
    let [warps_m, warps_n] = warps;
    Tile { m, n, warps_m, warps_n, stages, multiplier: Multiplier::Warp, is_bulk: false }
}

const fn by_warpgroups(m: usize, n: usize, groups: usize, stages: usize) -> Tile {
    Tile {
        m,
        n,
        warps_m: 4 * groups,
        warps_n: 1,
        stages,
        multiplier: Multiplier::Warpgroup,
        is_bulk: false,
    }
}

/// Where tiles that the copy engine writes start, in shared memory.
const BULK_ALIGNMENT_BYTES: usize = 1024;

impl Tile {
    /// The ways to fill it: by threads, and by the copy engine where warpgroups read it.
    pub(super) fn variants(self) -> impl Iterator<Item = Tile> {
        let bulk = Tile { is_bulk: true, ..self };
        [self].into_iter().chain((self.multiplier == Multiplier::Warpgroup).then_some(bulk))
    }

    pub(super) fn threads(&self) -> usize {
        self.warps_m * self.warps_n * 32
    }

    /// Dynamic shared memory for so many steps: the stages that are used, or the tile of sums that follows them.
    pub(super) fn shared_bytes(&self, steps: usize) -> usize {
        self.stage_bytes(steps).max(self.tile_bytes(size_of::<f32>())) + self.alignment_bytes()
    }

    /// The same where results of 16 bits follow the stages, or lie beside them where they are residuals first.
    pub(super) fn shared_bytes_of_results(&self, steps: usize, has_residual: bool) -> usize {
        let (stages, results) = (self.stage_bytes(steps), self.tile_bytes(size_of::<u16>()));
        let both = if has_residual { stages + results } else { stages.max(results) };
        both + self.alignment_bytes()
    }

    fn stage_bytes(&self, steps: usize) -> usize {
        self.stages.min(steps) * (self.m + self.n) * ROW_BYTES
    }

    /// One element for each output, in padded rows.
    fn tile_bytes(&self, element_bytes: usize) -> usize {
        self.m * (self.n + 8) * element_bytes
    }

    fn alignment_bytes(&self) -> usize {
        if self.is_bulk { BULK_ALIGNMENT_BYTES } else { 0 }
    }

    /// True where the chip has what multiplies, and room for a block.
    pub(super) fn is_available(&self, chip: Chip) -> bool {
        let has_multiplier = self.multiplier == Multiplier::Warp || chip.is_hopper();
        has_multiplier && self.shared_bytes(self.stages) <= chip.shared_bytes_per_block as usize
    }

    /// How many blocks of so many steps one SM holds, as far as shared memory, threads and registers tell.
    pub(super) fn blocks_per_sm(&self, steps: usize, chip: Chip) -> usize {
        self.blocks_with(self.shared_bytes(steps), chip)
    }

    /// The same for blocks with so much shared memory.
    pub(super) fn blocks_with(&self, shared_bytes: usize, chip: Chip) -> usize {
        let registers_besides_sums = match self.multiplier {
            Multiplier::Warp => 75,
            Multiplier::Warpgroup => 57,
        };
        let registers = (self.m * self.n / self.threads() + registers_besides_sums).min(255);
        let [threads, registers, shared_bytes] =
            [self.threads(), registers, shared_bytes].map(|count| count as u32);
        chip.blocks_per_sm(threads, registers, shared_bytes).max(1) as usize
    }

    /// A name for reports.
    pub(super) fn name(&self) -> String {
        let warps = match self.multiplier {
            Multiplier::Warp => format!("{} warps", self.warps_m * self.warps_n),
            Multiplier::Warpgroup => format!("{} warpgroups", self.warps_m / 4),
        };
        let bulk = if self.is_bulk { " bulk" } else { "" };
        format!("{}x{} {warps} {} stages{bulk}", self.m, self.n, self.stages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tile_fits_a_block_and_its_warps_fit_the_tile() {
        for tile in TILES {
            assert!(
                tile.shared_bytes(100) <= Chip::H200.shared_bytes_per_block as usize,
                "{tile:?}"
            );
            assert!(tile.m.is_multiple_of(16 * tile.warps_m), "{tile:?}");
            assert!(tile.n.is_multiple_of(16 * tile.warps_n), "{tile:?}");
            assert!(tile.multiplier == Multiplier::Warp || [64, 128, 256].contains(&tile.n));
            assert!(tile.threads() <= 1024);
        }
    }
}
