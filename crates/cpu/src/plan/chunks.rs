//! Chunks: steps whose activations do not fit the caches at the full batch run image by image, one after another,
//! so that what one step writes is still there when the next reads it.

use std::ops::Range;

use weft_ir::axis::normalise_axis;
use weft_ir::operators::convolution::{AveragePool, Conv, GlobalPool, MaxPool};
use weft_ir::operators::elementwise::{Binary, Unary};
use weft_ir::operators::fused::{FusedAttention, FusedConv, FusedMatMul, ScaleShift};
use weft_ir::operators::layout::{Concat, Transpose};
use weft_ir::operators::normalisation::LayerNormalization;
use weft_ir::{Fact, Facts, Node, OptimizedGraph, ValueId};

use super::slot::is_dense;

/// A step is worth cutting where it reads and writes more than this: beyond the second-level cache of a core.
const WORTH_CUTTING_BYTES: usize = 2 << 20;

/// A graph's values at its own batch and at a batch of one.
pub(super) struct Chunking {
    /// How many chunks a whole batch is.
    pub(super) count: usize,
    /// What is known of every value of one chunk.
    pub(super) facts: Facts,
}

impl Chunking {
    /// How the graph's batch could be cut; `None` where its inputs have no batch in common.
    pub(super) fn of(graph: &OptimizedGraph) -> Option<Self> {
        let shapes: Vec<Vec<usize>> = graph
            .graph()
            .required_inputs()
            .map(|id| graph.fact(id).shape())
            .collect::<Option<_>>()?;
        let count = *shapes.first()?.first()?;
        if count < 2 || shapes.iter().any(|shape| shape.first() != Some(&count)) {
            return None;
        }
        let single: Vec<Vec<usize>> = shapes
            .into_iter()
            .map(|shape| std::iter::once(1).chain(shape.into_iter().skip(1)).collect())
            .collect();
        Some(Self { count, facts: graph.facts_for(&single) })
    }

    /// True where a node computes each chunk of its outputs from the same chunk of its inputs, and is worth cutting.
    pub(super) fn cuts(&self, node: &Node, graph: &OptimizedGraph) -> bool {
        let values = || node.inputs.iter().chain(&node.outputs).flatten().copied();
        let moving = || values().filter(|&id| graph.graph().constant(id).is_none());
        let bytes = |id: ValueId| graph.fact(id).size_bytes().unwrap_or(0);
        let moved: usize = moving().map(bytes).sum();
        let kept: usize =
            values().filter(|&id| graph.graph().constant(id).is_some()).map(bytes).sum();
        moved > WORTH_CUTTING_BYTES
            && kept <= moved / self.count
            && moving().all(|id| self.is_cut(graph.fact(id), self.facts.of(id)))
            && is_separable(node, graph)
    }

    fn is_cut(&self, whole: &Fact, chunk: &Fact) -> bool {
        let (Some(whole_shape), Some(chunk_shape)) = (whole.shape(), chunk.shape()) else {
            return false;
        };
        is_dense(whole)
            && is_dense(chunk)
            && whole_shape.len() == chunk_shape.len()
            && whole_shape.first().is_some_and(|&size| size == self.count * chunk_shape[0])
            && whole_shape[1..] == chunk_shape[1..]
    }
}

/// True for operators that never mix entries of their first axis.
pub(super) fn is_separable(node: &Node, graph: &OptimizedGraph) -> bool {
    let rank = || node.output().and_then(|id| graph.fact(id).rank()).unwrap_or(0);
    if node.is::<Binary>().is_some() {
        // A constant may be spread over the batch, but must not have entries of its own for each image.
        return node
            .inputs
            .iter()
            .flatten()
            .filter_map(|&id| graph.graph().constant(id))
            .all(|constant| constant.rank() < rank() || constant.shape().first() == Some(&1));
    }
    if let Some(concat) = node.is::<Concat>() {
        let has_constants =
            node.inputs.iter().flatten().any(|&id| graph.graph().constant(id).is_some());
        return !has_constants && normalise_axis(concat.axis, rank()).is_ok_and(|axis| axis > 0);
    }
    if let Some(norm) = node.is::<LayerNormalization>() {
        return normalise_axis(norm.axis, rank()).is_ok_and(|axis| axis > 0);
    }
    if let Some(transpose) = node.is::<Transpose>() {
        return transpose
            .permutation_for(rank())
            .is_ok_and(|permutation| permutation.first() == Some(&0));
    }
    if node.is::<FusedMatMul>().is_some() {
        return rank() > 1;
    }
    node.is::<Conv>().is_some()
        || node.is::<FusedConv>().is_some()
        || node.is::<MaxPool>().is_some()
        || node.is::<AveragePool>().is_some()
        || node.is::<GlobalPool>().is_some()
        || node.is::<ScaleShift>().is_some()
        || node.is::<Unary>().is_some()
        || node.is::<FusedAttention>().is_some()
}

/// The runs of at least two cut steps; a single one would gain nothing.
pub(super) fn segments(is_cut: &[bool]) -> Vec<Range<usize>> {
    let mut segments = Vec::new();
    let mut start = 0;
    while start < is_cut.len() {
        let length = is_cut[start..].iter().take_while(|&&cut| cut).count();
        if length > 1 {
            segments.push(start..start + length);
        }
        start += length.max(1);
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_runs_of_two_and_more() {
        let cut = |text: &str| text.chars().map(|c| c == 'x').collect::<Vec<bool>>();
        for (steps, expected) in [
            ("", vec![]),
            ("-x-", vec![]),
            ("xx-xxx", vec![0..2, 3..6]),
            ("-xx-xx", vec![1..3, 4..6]),
        ] {
            assert_eq!(segments(&cut(steps)), expected, "{steps}");
        }
    }
}
