//! An estimate of how long a tile takes, in cycles of an SM as the estimate of products has them.
//!
//! The constants were fitted to timings of tiles on the layers of ResNet-18 and VGG16, and scaled so that estimates can be
//! compared with those of products.

use super::WindowConv;
use super::tile::{CHANNELS, ROW_BYTES, Tile};
use crate::Chip;
use crate::kernels::gemm::MEMORY_BYTES_PER_CYCLE;

/// Multiply-adds that one SM does in a cycle.
const PRODUCTS_PER_CYCLE: f64 = 1650.0;
/// Bytes that one SM loads from the L2 cache in a cycle while all do.
const LOAD_BYTES_PER_CYCLE: f64 = 28.7;
/// What a step of a block takes at least.
const LEAST_STEP: f64 = 420.0;
/// Starting a block and bringing what it needs first.
const FILL: f64 = 6500.0;
/// Storing one element of the output, and loading what is added to it.
const STORE: f64 = 0.21;
const RESIDUAL: f64 = 0.08;
/// The share of what does not limit that counts all the same.
const SECONDARY: f64 = 0.02;

/// The estimated time of so many entries on what a chip has for all of them.
pub(super) fn estimate(conv: &WindowConv, tile: &Tile, chip: Chip, entries: usize) -> f64 {
    let blocks = tile.blocks(conv) * entries;
    let sms = chip.sm_count as usize;
    let blocks_of_sm = blocks.div_ceil(sms);
    let waves = blocks_of_sm.div_ceil(blocks_per_sm(conv, tile, chip)) as f64;
    let steps = (conv.channel_blocks() * conv.taps()) as f64;

    let outputs = (tile.run(conv) * tile.pixel_groups * tile.filters()) as f64;
    let multiply = outputs * CHANNELS as f64 / PRODUCTS_PER_CYCLE;
    let region = tile.region(conv).iter().product::<usize>() * ROW_BYTES;
    let loaded = tile.stage_bytes() as f64 + region as f64 / conv.taps() as f64;
    let busy = multiply.max(loaded / LOAD_BYTES_PER_CYCLE);
    let store = if conv.is_pooled { STORE / 2.0 } else { STORE };
    let finish = outputs * (store + if conv.has_residual { RESIDUAL } else { 0.0 });

    let by_latency = waves * (FILL + steps * busy.max(LEAST_STEP) + finish);
    let by_throughput = blocks_of_sm as f64 * (steps * busy + finish) + FILL;
    let by_memory = bytes(conv) * entries as f64 / MEMORY_BYTES_PER_CYCLE;
    by_latency.max(by_throughput).max(by_memory) + SECONDARY * (by_latency + by_throughput)
}

/// How many blocks one SM holds, as far as shared memory and registers tell.
fn blocks_per_sm(conv: &WindowConv, tile: &Tile, chip: Chip) -> usize {
    const REGISTERS_BESIDES_SUMS: usize = 30;
    let registers = (tile.run(conv) / 2 + REGISTERS_BESIDES_SUMS).next_multiple_of(8);
    let [threads, registers, shared_bytes] =
        [tile.threads(), registers, tile.shared_bytes(conv)].map(|count| count as u32);
    chip.blocks_per_sm(threads, registers, shared_bytes).max(1) as usize
}

/// Bytes that must be moved whatever the tile.
fn bytes(conv: &WindowConv) -> f64 {
    let pixels = |[height, width]: [usize; 2]| conv.images * height * width;
    let outputs = pixels(conv.image.output) * conv.filters;
    let elements = pixels(conv.image.size) * conv.image.channels
        + conv.filters * conv.filter_stride
        + if conv.is_pooled { outputs / 4 } else { outputs };
    (elements * conv.precision.storage().size_bytes()) as f64
}
