//! How much of what a plan reads and writes passes through the GPU's memory: an estimate.
//!
//! A step whose values together fit into half of the L2 cache finds there what the step before has written, and what it
//! writes itself is read there again: launches follow each other, and the arena is the same few addresses over and over.
//! A step whose values do not fit reads and writes all of them through memory. Between two runs other models use the
//! cache, so that weights are read from memory once per run, of tables that rows are picked from only these rows.

use weft_ir::{OptimizedGraph, ValueId};

use super::target::Target;
use super::task::{Side, Tasks};

/// The operator that reads a few rows of a table.
const PICKS_ROWS: &str = "Gather";

/// The share of the L2 cache that counts: its two halves each keep a copy of what SMs on both sides read.
const L2_PARTS: usize = 2;

/// What a plan with so many bytes of weights moves in one run.
pub(super) fn dram_bytes(
    weight_bytes: usize,
    tasks: &Tasks,
    graph: &OptimizedGraph,
    target: &Target<'_>,
) -> usize {
    let kept_bytes = target.chip.l2_bytes as usize / L2_PARTS;
    let size = |id| target.device_value(graph, id).map_or(0, |value| value.size_bytes());
    let is_weight = |id: ValueId| graph.graph().constant(tasks.views.root(id)).is_some();
    let on_device = tasks.tasks.iter().filter(|task| task.side() == Side::Device);
    let (mut moved_bytes, mut unread_bytes) = (0, 0);
    for task in on_device {
        let outputs = || task.outputs.iter().copied().flatten();
        let (weights, read): (Vec<ValueId>, Vec<ValueId>) =
            task.reads().into_iter().partition(|&id| is_weight(id));
        moved_bytes += passed(read.into_iter().chain(outputs()).map(size).sum(), kept_bytes);
        if task.operator == PICKS_ROWS {
            let table_bytes: usize = weights.into_iter().map(size).sum();
            unread_bytes += table_bytes.saturating_sub(outputs().map(size).sum());
        }
    }
    weight_bytes.saturating_sub(unread_bytes) + moved_bytes
}

/// What a step moves that touches so many bytes.
fn passed(touched_bytes: usize, kept_bytes: usize) -> usize {
    if touched_bytes > kept_bytes { touched_bytes } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::passed;

    #[test]
    fn what_fits_the_cache_stays_there() {
        assert_eq!(passed(50, 50), 0);
        assert_eq!(passed(51, 50), 51);
    }
}
