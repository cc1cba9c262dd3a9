//! What a block of `window_conv.cu` computes, and what it takes for that.

use super::WindowConv;

/// Channels that are brought at once, and the bytes of one pixel's.
pub(super) const CHANNELS: usize = 64;
pub(super) const ROW_BYTES: usize = 128;

/// Filters of a warpgroup.
pub(super) const FILTERS: usize = 64;

/// The longest run that is multiplied at once.
const MAX_RUN: usize = 256;

/// The longest side of a box that the copy engine brings.
const MAX_BOX: usize = 256;

/// A run at least so long, where an image has so many pixels: shorter ones read weights too often.
const MIN_RUN: usize = 32;

/// How many parts a row of pixels may be cut into.
const ROW_PARTS: [usize; 4] = [1, 2, 4, 8];

/// Warpgroups along filters and pixels.
const GROUPS: [[usize; 2]; 3] = [[1, 1], [2, 1], [1, 2]];

/// Tiles of weights in shared memory.
const STAGES: [usize; 2] = [4, 6];

/// Shared memory lies at multiples of this, which the kernel sees to.
const ALIGNMENT: usize = 1024;

/// The tile of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    /// Pixels of a warpgroup.
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) filter_groups: usize,
    pub(super) pixel_groups: usize,
    pub(super) stages: usize,
}

/// Regions in shared memory: the next is brought while one is multiplied.
pub(super) fn regions(conv: &WindowConv) -> usize {
    conv.channel_blocks().min(2)
}

impl Tile {
    /// Tiles that cut the image into equal parts, for every number of warpgroups.
    pub(super) fn sensible(conv: &WindowConv) -> impl Iterator<Item = Self> + use<> {
        let [height, width] = conv.image.output;
        let [kernel_y, kernel_x] = conv.image.kernel;
        let filters = conv.filters;
        let least = MIN_RUN.min(height * width);
        let mut found = Vec::new();
        for parts in ROW_PARTS {
            let columns = width.div_ceil(parts);
            let pitch = columns + kernel_x - 1;
            for [filter_groups, pixel_groups] in GROUPS {
                if !filters.is_multiple_of(filter_groups * FILTERS) {
                    continue;
                }
                for row_parts in 1..=height {
                    let rows = height.div_ceil(row_parts * pixel_groups);
                    let run = rows * pitch - (kernel_x - 1);
                    let region_rows = rows * pixel_groups + kernel_y - 1;
                    let fits = run <= MAX_RUN && pitch <= MAX_BOX && region_rows <= MAX_BOX;
                    let is_even = rows.is_multiple_of(2) && columns.is_multiple_of(2);
                    if !fits || run < least || conv.is_pooled && !is_even {
                        continue;
                    }
                    let of = |stages| Self { rows, columns, filter_groups, pixel_groups, stages };
                    found.extend(STAGES.map(of));
                }
            }
        }
        found.sort_by_key(|tile: &Self| {
            let Self { rows, columns, filter_groups, pixel_groups, stages } = *tile;
            (std::cmp::Reverse(rows * columns), columns, filter_groups, pixel_groups, stages)
        });
        found.dedup();
        found.into_iter()
    }

    fn groups(&self) -> usize {
        self.filter_groups * self.pixel_groups
    }

    /// Those that multiply, and a warp that has everything brought.
    pub(super) fn threads(&self) -> usize {
        self.groups() * 128 + 32
    }

    pub(super) fn filters(&self) -> usize {
        self.filter_groups * FILTERS
    }

    pub(super) fn filter_blocks(&self, conv: &WindowConv) -> usize {
        conv.filters / self.filters()
    }

    /// Tiles of an image along its rows and columns.
    pub(super) fn tiles(&self, conv: &WindowConv) -> [usize; 2] {
        let [height, width] = conv.image.output;
        [height.div_ceil(self.rows * self.pixel_groups), width.div_ceil(self.columns)]
    }

    pub(super) fn blocks(&self, conv: &WindowConv) -> usize {
        let [rows, columns] = self.tiles(conv);
        conv.images * rows * columns * self.filter_blocks(conv)
    }

    /// From one row of the region to the next, in pixels.
    fn pitch(&self, conv: &WindowConv) -> usize {
        self.columns + conv.image.kernel[1] - 1
    }

    /// Neighbours in shared memory from the first pixel to the last, rounded up to eight.
    pub(super) fn run(&self, conv: &WindowConv) -> usize {
        (self.rows * self.pitch(conv) - (conv.image.kernel[1] - 1)).next_multiple_of(8)
    }

    /// Rows and columns that the windows of a block cover.
    pub(super) fn region(&self, conv: &WindowConv) -> [usize; 2] {
        let [kernel_y, _] = conv.image.kernel;
        [self.rows * self.pixel_groups + kernel_y - 1, self.pitch(conv)]
    }

    /// Bytes of a region, with what the last run reaches beyond it.
    pub(super) fn region_bytes(&self, conv: &WindowConv) -> usize {
        let [kernel_y, kernel_x] = conv.image.kernel;
        let [rows, pitch] = self.region(conv);
        let last_run = ((self.pixel_groups - 1) * self.rows + kernel_y - 1) * pitch + kernel_x - 1;
        let pixels = (rows * pitch).max(last_run + self.run(conv));
        (pixels * ROW_BYTES).next_multiple_of(ALIGNMENT)
    }

    pub(super) fn stage_bytes(&self) -> usize {
        self.filters() * ROW_BYTES
    }

    /// What a block asks for, as the kernel lays it out.
    pub(super) fn shared_bytes(&self, conv: &WindowConv) -> usize {
        const RESULT_STRIDE_BYTES: usize = 2 * (FILTERS + 8);
        let regions = regions(conv) * self.region_bytes(conv);
        let results = self.groups() * self.run(conv) * RESULT_STRIDE_BYTES;
        let others = if conv.has_residual { regions + results } else { regions.max(results) };
        self.stages * self.stage_bytes() + others + ALIGNMENT
    }

    /// For reports and for the tuning database.
    pub(super) fn name(&self) -> String {
        let Self { rows, columns, filter_groups, pixel_groups, stages } = self;
        format!("{rows}x{columns} pixels {filter_groups}x{pixel_groups} warpgroups {stages} stages")
    }
}
