//! An estimate of how long a tile and a split take, to rank candidates before anything is measured.
//!
//! All times are in cycles of an SM. The constants were fitted to timings of tiles and splits over clusters on the layers
//! of four networks at several batch sizes; those of [`WORKSPACE`] and [`BULK`] are set by hand.

use super::problem::{GemmProblem, Left};
use super::split::Split;
use super::tile::{Multiplier, ROW_BYTES, Tile};
use crate::{Chip, Precision};

/// Multiply-adds of 16-bit numbers that one SM does in a cycle, by warps and by warpgroups.
const PRODUCTS_PER_CYCLE: [f64; 2] = [1406.0, 1685.0];
/// Bytes of operands that one SM reads from shared memory in a cycle, likewise.
const OPERAND_BYTES_PER_CYCLE: [f64; 2] = [41.0, 262.0];
/// The latency of a load, which stages hide, likewise.
const LOAD_LATENCY: [f64; 2] = [36.0, 1939.0];
/// What a step costs less where the copy engine brings tiles.
const BULK: f64 = 40.0;
/// What every step costs besides, likewise.
const STEP: [f64; 2] = [214.0, 93.5];
/// Bytes that one SM loads from the L2 cache in a cycle.
const LOAD_BYTES_PER_CYCLE: f64 = 55.0;
/// Bytes that the whole chip loads from memory in a cycle.
pub(crate) const MEMORY_BYTES_PER_CYCLE: f64 = 1847.0;
/// Finding a pixel, for each row that one thread loads in a step.
const PIXEL: f64 = 191.0;
/// Starting a block and filling its stages.
const FILL: f64 = 873.0;
/// Storing one element of the output.
const STORE: f64 = 0.322;
/// The share of storing that other blocks of the SM do not hide.
const STORE_EXPOSED: f64 = 0.933;
/// Adding up over a cluster: once, and for each element of the tile.
const CLUSTER: (f64, f64) = (1988.0, 0.295);
/// Adding up over a workspace: once, and for each element of each part.
const WORKSPACE: (f64, f64) = (3042.0, 0.093);
/// The share of what does not limit that counts all the same, so that of two candidates with the same limit the one
/// with less work is taken.
const SECONDARY: f64 = 0.02;

/// The estimated time, in cycles.
pub(super) fn estimate(problem: &GemmProblem, tile: &Tile, split: Split, chip: Chip) -> f64 {
    let element_bytes = problem.element_bytes();
    let steps_of_block = problem.steps().div_ceil(split.count());
    let steps = steps_of_block as f64;
    let tiles = problem.m.div_ceil(tile.m) * problem.n.div_ceil(tile.n) * problem.stack;
    let blocks = tiles * split.count();
    let sms = chip.sm_count as usize;
    let blocks_of_sm = blocks.div_ceil(sms) as f64;
    let waves = (blocks.div_ceil(sms)).div_ceil(tile.blocks_per_sm(steps_of_block, chip)) as f64;

    let (m, n) = (tile.m as f64, tile.n as f64);
    let products = m * n * ROW_BYTES as f64 / element_bytes as f64;
    let (multiplier, rows_read) = match tile.multiplier {
        Multiplier::Warp => (0, m * tile.warps_n as f64 + n * tile.warps_m as f64),
        Multiplier::Warpgroup => (1, m + n * tile.warps_m as f64 / 4.0),
    };
    let multiply = products / PRODUCTS_PER_CYCLE[multiplier] * relative_cost(problem.precision);
    let operands = rows_read * ROW_BYTES as f64 / OPERAND_BYTES_PER_CYCLE[multiplier];
    let load = (m + n) * ROW_BYTES as f64 / LOAD_BYTES_PER_CYCLE;
    let find = match problem.left {
        Left::Image(_) => PIXEL * m / tile.threads() as f64,
        Left::Matrix { .. } => 0.0,
    };
    let busy = multiply.max(operands).max(load) + find;
    let latency = LOAD_LATENCY[multiplier] / (tile.stages - 1 - multiplier) as f64;
    let bulk = if tile.is_bulk { BULK } else { 0.0 };
    let alone = busy.max(latency) + STEP[multiplier] - bulk;
    let finish = m * n / split.count() as f64 * STORE
        + match split {
            Split::None => 0.0,
            Split::Cluster(_) => CLUSTER.0 + m * n * CLUSTER.1,
            Split::Workspace(parts) => WORKSPACE.0 + m * n * parts as f64 * WORKSPACE.1,
        };

    let by_latency = waves * (FILL + steps * alone + finish);
    let by_throughput = blocks_of_sm * (steps * busy + finish * STORE_EXPOSED) + FILL;
    let by_memory = (bytes(problem) + workspace_bytes(tiles, tile, split)) / MEMORY_BYTES_PER_CYCLE;
    by_latency.max(by_throughput).max(by_memory) + SECONDARY * (by_latency + by_throughput)
}

/// What a product costs next to one of 16-bit numbers.
fn relative_cost(precision: Precision) -> f64 {
    match precision {
        Precision::F16 | Precision::Bf16 => 1.0,
        Precision::Tf32 => 4.0,
        Precision::F32 => 7.0,
    }
}

/// Bytes of parts of sums, which are written and read again.
fn workspace_bytes(tiles: usize, tile: &Tile, split: Split) -> f64 {
    match split {
        Split::Workspace(parts) => (2 * tiles * parts * tile.m * tile.n * size_of::<f32>()) as f64,
        Split::None | Split::Cluster(_) => 0.0,
    }
}

/// Bytes that must be moved whatever the tile.
pub(super) fn bytes(problem: &GemmProblem) -> f64 {
    let left = match problem.left {
        Left::Matrix { .. } => problem.m * problem.k,
        Left::Image(image) => problem.m * image.channels,
    };
    let elements = left + problem.n * problem.k + problem.m * problem.n;
    elements as f64 * problem.stack as f64 * problem.element_bytes() as f64
}
