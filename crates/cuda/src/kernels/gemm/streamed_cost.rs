//! An estimate of how long blocks that stay take, in cycles of an SM as the estimate of products has them.
//!
//! The constants were fitted to timings of tiles on products of ResNet-50 and BERT on 8 to 64 SMs.

use super::cost::{MEMORY_BYTES_PER_CYCLE, bytes};
use super::problem::{GemmProblem, Left};
use super::streamed::StreamedTile;
use super::tile::ROW_BYTES;
use crate::Chip;

/// Multiply-adds that one SM does in a cycle.
const PRODUCTS_PER_CYCLE: f64 = 1824.0;
/// Bytes of operands that one SM loads in a cycle, and bytes of everything that it loads and stores.
const OPERAND_BYTES_PER_CYCLE: f64 = 63.0;
const BYTES_PER_CYCLE: f64 = 55.0;
/// How much longer a step takes where the copy engine finds windows of images.
const WINDOWS: f64 = 1.15;
/// What a step takes at least.
const LEAST_STEP: f64 = 405.0;
/// Finishing a tile: once, and for each of its elements, without and with residuals, which come when the results before them have
/// left.
const FINISH: f64 = 500.0;
const FINISH_ELEMENT: [f64; 2] = [0.13, 0.29];
/// Starting a block and bringing what it needs first.
const FILL: f64 = 2500.0;

/// The estimated time of so many entries on what a chip has for all of them, in cycles. Timings were of one entry: of several it only says
/// in which order tiles stand.
pub(super) fn estimate(
    problem: &GemmProblem,
    tile: &StreamedTile,
    chip: Chip,
    entries: usize,
) -> f64 {
    let tiles = tile.tiles(problem) * entries;
    let tiles_of_sm = tiles.div_ceil(chip.sm_count as usize) as f64;
    let (m, n) = (tile.m() as f64, tile.n as f64);
    let steps = problem.steps() as f64;
    // Rows beyond the last are not loaded.
    let step_bytes = (m.min(problem.m as f64) + n) * ROW_BYTES as f64;
    let products = m * n * (ROW_BYTES / problem.element_bytes()) as f64;
    let step = (products / PRODUCTS_PER_CYCLE).max(step_bytes / OPERAND_BYTES_PER_CYCLE);
    let windows = if matches!(problem.left, Left::Image(_)) { WINDOWS } else { 1.0 };
    let multiply = steps * step.max(LEAST_STEP) * windows;
    let has_residual = usize::from(problem.has_residual);
    let finish = FINISH + m * n * FINISH_ELEMENT[has_residual];
    let results = m * n * (problem.element_bytes() * (1 + has_residual)) as f64;
    // A team finishes while others multiply, which they do in turns.
    let by_teams = (multiply + finish) / tile.teams as f64;
    let by_bytes = (steps * step_bytes + results) / BYTES_PER_CYCLE;
    let by_sm = tiles_of_sm * multiply.max(by_teams).max(by_bytes) + FILL + finish;
    by_sm.max(entries as f64 * bytes(problem) / MEMORY_BYTES_PER_CYCLE)
}
