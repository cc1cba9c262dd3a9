//! The operators of a model whose kernels have parameters, as its plan will meet them.

use weft_ir::OptimizedGraph;

use super::build::{cut_nodes, view_of};
use super::chunks::Chunking;
use super::select::fused_operator;
use super::site::Site;
use crate::Isa;
use crate::tuning::FusedOperator;
use crate::weights::WeightStore;

/// One for each node that has such kernels, in the order of the graph: of the whole batch, or of a chunk of it where the node
/// runs chunk by chunk.
pub(crate) fn fused_operators(
    graph: &OptimizedGraph,
    isa: Isa,
    workers: usize,
) -> Vec<FusedOperator> {
    let weights = &WeightStore::default();
    let chunking = Chunking::of(graph);
    let cut = cut_nodes(graph, chunking.as_ref());
    let mut operators = Vec::new();
    for (node, is_cut) in graph.graph().nodes().iter().zip(cut) {
        if view_of(node, graph).is_some() {
            continue;
        }
        let facts = graph.facts();
        let whole =
            Site { node, graph, facts, deciding: facts, weights, isa, workers, choices: None };
        let for_chunk = chunking
            .as_ref()
            .filter(|_| is_cut)
            .and_then(|chunking| fused_operator(&Site { facts: &chunking.facts, ..whole }));
        operators.extend(for_chunk.or_else(|| fused_operator(&whole)));
    }
    operators
}
