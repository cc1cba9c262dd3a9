//! The space of a product's candidates: every tile and split, and which of them are legal.

use super::problem::GemmProblem;
use super::split::Split;
use super::tile::{Multiplier, TILES, Tile};
use crate::Chip;

/// The largest workspace of one product.
const MAX_WORKSPACE_BYTES: usize = 256 << 20;

/// Stages that tiles are tried with.
const STAGES: std::ops::RangeInclusive<usize> = 3..=6;

/// The ways to compute products of one shape on a share of a chip.
pub(super) struct Space<'a> {
    /// With as many products in its stack as one launch computes.
    pub(super) problem: &'a GemmProblem,
    /// A launch has descriptions of its operands for the copy engine: products are not stacked.
    pub(super) has_descriptions: bool,
    pub(super) chip: Chip,
}

impl Space<'_> {
    /// Those that the kernel computes rightly.
    pub(super) fn legal(&self) -> impl Iterator<Item = (Tile, Split)> {
        every_tile()
            .flat_map(Tile::variants)
            .flat_map(with_splits)
            .filter(|(tile, split)| self.is_legal(tile, *split))
    }

    /// Those of the legal ones that may be fast.
    pub(super) fn sensible(&self) -> impl Iterator<Item = (Tile, Split)> {
        self.legal().filter(|(tile, split)| self.is_sensible(tile, *split))
    }

    /// Those of them with the stages that serve most products well.
    pub(super) fn usual(&self) -> impl Iterator<Item = (Tile, Split)> {
        let choices = TILES.iter().flat_map(|tile| tile.variants()).flat_map(with_splits);
        choices.filter(|(tile, split)| {
            self.is_legal(tile, *split) && self.is_in_proportion(tile, *split)
        })
    }

    fn tile_count(&self, tile: &Tile) -> usize {
        let problem = self.problem;
        problem.m.div_ceil(tile.m) * problem.n.div_ceil(tile.n) * problem.stack
    }

    fn is_legal(&self, tile: &Tile, split: Split) -> bool {
        let problem = self.problem;
        let (steps, parts) = (problem.steps(), split.count());
        // Warpgroups read operands from shared memory, where numbers of 4 bytes are not split.
        let has_multiplier = match tile.multiplier {
            Multiplier::Warp => true,
            Multiplier::Warpgroup => problem.element_bytes() == 2 && !problem.right.by_rows,
        };
        // The copy engine wants rows at multiples of 16 bytes.
        let can_be_bulk = self.has_descriptions && problem.left_load_bytes() == Some(16);
        let has_means = match split {
            Split::None => true,
            Split::Cluster(_) => self.chip.is_hopper_or_later(),
            Split::Workspace(_) => {
                let bytes = self.tile_count(tile) * parts * tile.m * tile.n * size_of::<f32>();
                bytes <= MAX_WORKSPACE_BYTES
            }
        };
        let is_split_evenly = parts == 1 || (parts - 1) * steps.div_ceil(parts) < steps;
        problem.is_supported()
            && has_multiplier
            && (!tile.is_bulk || can_be_bulk)
            && tile.is_available(self.chip)
            && has_means
            && is_split_evenly
    }

    fn is_sensible(&self, tile: &Tile, split: Split) -> bool {
        // Stages that no step fills change nothing.
        let steps_of_block = self.problem.steps().div_ceil(split.count());
        let fills_stages = tile.stages <= steps_of_block.max(1) + 2;
        fills_stages && self.is_in_proportion(tile, split)
    }

    fn is_in_proportion(&self, tile: &Tile, split: Split) -> bool {
        let problem = self.problem;
        let (m, n, parts) = (problem.m, problem.n, split.count());
        // The smallest tile is always there, so that there is a candidate for every size.
        let is_smallest = *tile == TILES[0] && split == Split::None;
        let fits_output = (tile.m == 16 || tile.m < 2 * m) && (tile.n == 32 || tile.n < 2 * n);
        let places = self.chip.sm_count as usize * tile.blocks_per_sm(problem.steps(), self.chip);
        let is_worth_splitting = parts == 1 || self.tile_count(tile) * parts <= 2 * places;
        is_smallest || (fits_output && is_worth_splitting)
    }
}

/// Every tile with every number of stages.
fn every_tile() -> impl Iterator<Item = Tile> {
    let is_first_of_its_shape = |index: usize| {
        let tile = &TILES[index];
        TILES[..index].iter().all(|other| Tile { stages: tile.stages, ..*other } != *tile)
    };
    (0..TILES.len())
        .filter(move |&index| is_first_of_its_shape(index))
        .flat_map(|index| STAGES.map(move |stages| Tile { stages, ..TILES[index] }))
}

fn with_splits(tile: Tile) -> impl Iterator<Item = (Tile, Split)> {
    Split::ALL.into_iter().map(move |split| (tile, split))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_usual_tile_is_in_the_space_once() {
        let tiles: Vec<Tile> = every_tile().collect();
        let names: HashSet<String> = tiles.iter().map(Tile::name).collect();
        assert_eq!(names.len(), tiles.len(), "a name is a tile");
        assert!(TILES.iter().all(|tile| tiles.contains(tile)));
    }
}
