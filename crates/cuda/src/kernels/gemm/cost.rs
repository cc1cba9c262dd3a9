//! An estimate of how long a tile and a split take, to rank candidates before anything is measured.
//!
//! All times are in cycles of an SM. The constants were fitted to timings of every tile and split on the layers of
//! four networks at several batch sizes; what the estimate puts first is close to the fastest of them.

use super::candidates::Split;
use super::problem::{GemmProblem, Left};
use super::tile::{ROW_BYTES, Tile};
use crate::{Chip, Precision};

/// Multiply-adds of 16-bit numbers that one SM does in a cycle.
const PRODUCTS_PER_CYCLE: f64 = 707.0;
/// Bytes of fragments that one SM reads from shared memory in a cycle.
const FRAGMENT_BYTES_PER_CYCLE: f64 = 148.0;
/// Bytes that one SM loads from the L2 cache in a cycle.
const LOAD_BYTES_PER_CYCLE: f64 = 38.8;
/// Bytes that the whole chip loads from memory in a cycle.
const MEMORY_BYTES_PER_CYCLE: f64 = 1780.0;
/// Finding a pixel, for each row that one thread loads in a step.
const PIXEL: f64 = 123.0;
/// The latency of a load, which stages hide.
const LOAD_LATENCY: f64 = 118.0;
/// What every step costs besides.
const STEP: f64 = 170.0;
/// Starting a block and filling its stages.
const FILL: f64 = 2270.0;
/// Storing one element of the output.
const STORE: f64 = 0.23;
/// The share of storing that other blocks of the SM do not hide.
const STORE_EXPOSED: f64 = 0.77;
/// Adding up over a cluster: once, and for each element of the tile.
const CLUSTER: (f64, f64) = (1720.0, 0.04);
/// Adding up over a workspace: once, and for each element of each part.
const WORKSPACE: (f64, f64) = (1680.0, 0.17);

/// The estimated time, in cycles.
pub(super) fn estimate(problem: &GemmProblem, tile: &Tile, split: Split, chip: Chip) -> f64 {
    let element_bytes = problem.element_bytes();
    let all_steps = (problem.k * element_bytes).div_ceil(ROW_BYTES);
    let steps = all_steps.div_ceil(split.count()) as f64;
    let tiles = problem.m.div_ceil(tile.m) * problem.n.div_ceil(tile.n) * problem.stack;
    let blocks = tiles * split.count();
    let sms = chip.sm_count as usize;
    let blocks_of_sm = blocks.div_ceil(sms) as f64;
    let waves = (blocks.div_ceil(sms)).div_ceil(tile.blocks_per_sm(chip)) as f64;

    let (m, n) = (tile.m as f64, tile.n as f64);
    let products = m * n * ROW_BYTES as f64 / element_bytes as f64;
    let multiply = products / PRODUCTS_PER_CYCLE * relative_cost(problem.precision);
    let fragments = (m * tile.warps_n as f64 + n * tile.warps_m as f64) * ROW_BYTES as f64
        / FRAGMENT_BYTES_PER_CYCLE;
    let load = (m + n) * ROW_BYTES as f64 / LOAD_BYTES_PER_CYCLE;
    let find = match problem.left {
        Left::Image(_) => PIXEL * m / tile.threads() as f64,
        Left::Matrix { .. } => 0.0,
    };
    let busy = multiply.max(fragments).max(load) + find;
    let alone = busy.max(LOAD_LATENCY / (tile.stages - 1) as f64) + STEP;
    let finish = m * n / split.count() as f64 * STORE
        + match split {
            Split::None => 0.0,
            Split::Cluster(_) => CLUSTER.0 + m * n * CLUSTER.1,
            Split::Workspace(parts) => WORKSPACE.0 + m * n * parts as f64 * WORKSPACE.1,
        };

    let by_latency = waves * (FILL + steps * alone + finish);
    let by_throughput = blocks_of_sm * (steps * busy + finish * STORE_EXPOSED) + FILL;
    let by_memory = bytes(problem) / MEMORY_BYTES_PER_CYCLE;
    by_latency.max(by_throughput).max(by_memory)
}

/// What a product costs next to one of 16-bit numbers.
fn relative_cost(precision: Precision) -> f64 {
    match precision {
        Precision::F16 | Precision::Bf16 => 1.0,
        Precision::Tf32 => 2.0,
        Precision::F32 => 7.0,
    }
}

/// Bytes that must be moved whatever the tile.
fn bytes(problem: &GemmProblem) -> f64 {
    let left = match problem.left {
        Left::Matrix { .. } => problem.m * problem.k,
        Left::Image(image) => problem.m * image.channels,
    };
    let elements = left + problem.n * problem.k + problem.m * problem.n;
    elements as f64 * problem.stack as f64 * problem.element_bytes() as f64
}
