//! Owns what can be varied in a Winograd convolution without changing what it computes.

use std::fmt;

use super::GAP;
use super::weights::WinogradTile;
use crate::conv::problem::Geometry;

/// How many values the transformed pixels of a block of tiles may have.
const BLOCK_VALUES: usize = 1024 * 1024;

/// How many tiles a block has at least, where there are as many.
const LEAST_TILES: usize = 12;

/// Whole panels of any instruction set.
const CHANNEL_MULTIPLE: usize = 32;

/// How many blocks each worker should find, so that none waits long for the last.
const TASKS_PER_WORKER: usize = 4;

/// How a Winograd convolution is cut into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WinogradParameters {
    /// How many tiles are transformed, multiplied and transformed back at a time, at most.
    pub tiles: usize,
    /// Output channels that are computed together, at most: their products stay in the second-level cache.
    pub channels: usize,
}

impl Default for WinogradParameters {
    fn default() -> Self {
        Self { tiles: 48, channels: 64 }
    }
}

impl fmt::Display for WinogradParameters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "tiles {} channels {}", self.tiles, self.channels)
    }
}

impl WinogradParameters {
    /// The parameters that convolutions are tuned over.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        const TILES: [usize; 6] = [12, 24, 48, 96, 192, 384];
        const CHANNELS: [usize; 5] = [32, 64, 128, 256, 512];
        TILES
            .into_iter()
            .flat_map(|tiles| CHANNELS.into_iter().map(move |channels| Self { tiles, channels }))
    }

    /// Output channels of every block but the last.
    pub(in crate::conv) fn block_channels(self, channels_out: usize) -> usize {
        let blocks = channels_out.div_ceil(self.channels.max(1)).max(1);
        channels_out.div_ceil(blocks).next_multiple_of(CHANNEL_MULTIPLE)
    }

    /// How many tiles every block but the last has.
    pub(in crate::conv) fn block_tiles(
        self,
        geometry: &Geometry,
        tile: WinogradTile,
        workers: usize,
    ) -> usize {
        let problem = &geometry.problem;
        let side = tile.output();
        let tile_count = problem.batch
            * geometry.output_height.div_ceil(side)
            * geometry.output_width.div_ceil(side);
        let tile_values = tile.products() * (problem.channels_in + GAP);
        let most = (BLOCK_VALUES / tile_values).clamp(LEAST_TILES, self.tiles.max(LEAST_TILES));
        let mut blocks = tile_count.div_ceil(most);
        if workers > 1 {
            let channel_blocks =
                problem.channels_out.div_ceil(self.block_channels(problem.channels_out));
            let wanted = (workers * TASKS_PER_WORKER).div_ceil(channel_blocks);
            blocks = blocks.max(wanted.min(tile_count.div_ceil(LEAST_TILES)));
        }
        tile_count.div_ceil(blocks)
    }
}
