//! A graph as rewrites read it: who produces a value, who uses it, what is known of it.

use crate::fact::Fact;
use crate::facts::Facts;
use crate::graph::{Graph, Node, ValueId};
use crate::operator::Operator;
use crate::tensor::Tensor;

/// Who produces and how many use each value of a graph.
pub(crate) struct Uses {
    producers: Vec<Option<usize>>,
    counts: Vec<usize>,
}

impl Uses {
    pub(crate) fn new(graph: &Graph) -> Self {
        let mut uses = Self {
            producers: vec![None; graph.values().len()],
            counts: vec![0; graph.values().len()],
        };
        for (index, node) in graph.nodes().iter().enumerate() {
            node.inputs.iter().flatten().for_each(|id| uses.counts[id.index()] += 1);
            node.outputs.iter().flatten().for_each(|id| uses.producers[id.index()] = Some(index));
        }
        graph.outputs().iter().for_each(|id| uses.counts[id.index()] += 1);
        uses
    }
}

/// A graph with its uses and facts.
pub(crate) struct View<'a> {
    graph: &'a Graph,
    facts: &'a Facts,
    uses: &'a Uses,
}

impl<'a> View<'a> {
    pub(crate) fn new(graph: &'a Graph, facts: &'a Facts, uses: &'a Uses) -> Self {
        Self { graph, facts, uses }
    }

    pub(crate) fn graph(&self) -> &'a Graph {
        self.graph
    }

    pub(crate) fn node(&self, index: usize) -> &'a Node {
        &self.graph.nodes()[index]
    }

    pub(crate) fn fact(&self, id: ValueId) -> &'a Fact {
        self.facts.of(id)
    }

    pub(crate) fn shape(&self, id: ValueId) -> Option<Vec<usize>> {
        self.fact(id).shape()
    }

    pub(crate) fn rank(&self, id: ValueId) -> Option<usize> {
        self.fact(id).rank()
    }

    pub(crate) fn constant(&self, id: ValueId) -> Option<&'a Tensor> {
        self.graph.constant(id)
    }

    /// The only element of a float constant.
    pub(crate) fn scalar(&self, id: ValueId) -> Option<f32> {
        let tensor = self.constant(id)?;
        match &*tensor.to_f32s().ok()? {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// The node that produces a value, and its index.
    pub(crate) fn producer(&self, id: ValueId) -> Option<(usize, &'a Node)> {
        let index = self.uses.producers[id.index()]?;
        Some((index, self.node(index)))
    }

    /// The node that produces a value, where its operator is of type `T`.
    pub(crate) fn produced_by<T: Operator>(&self, id: ValueId) -> Option<(&'a Node, &'a T)> {
        let (_, node) = self.producer(id)?;
        Some((node, node.is::<T>()?))
    }

    /// True where exactly one node input, and no graph output, reads the value.
    pub(crate) fn has_one_use(&self, id: ValueId) -> bool {
        self.uses.counts[id.index()] == 1 && !self.is_output(id)
    }

    pub(crate) fn is_output(&self, id: ValueId) -> bool {
        self.graph.outputs().contains(&id)
    }

    /// The nodes that read a value, with their indices.
    pub(crate) fn readers(&self, id: ValueId) -> impl Iterator<Item = (usize, &'a Node)> {
        self.graph
            .nodes()
            .iter()
            .enumerate()
            .filter(move |(_, node)| node.inputs.contains(&Some(id)))
    }
}
