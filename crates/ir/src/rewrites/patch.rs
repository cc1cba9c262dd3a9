//! A patch: what takes one node's place.

use std::sync::Arc;

use super::view::View;
use crate::error::GraphError;
use crate::fact::Fact;
use crate::facts::{Facts, infer_node};
use crate::graph::{Graph, Node, ValueId, ValueInfo};
use crate::operator::Operator;
use crate::tensor::Tensor;

/// What takes the place of one node, the root of a matched pattern. Nodes inside the pattern are left alone:
/// they are dead code once nothing reads them.
#[derive(Debug)]
pub(crate) enum Patch {
    /// New nodes, which together produce every output of the root.
    Nodes(NewNodes),
    /// The root does nothing: its first output is this value.
    Alias(ValueId),
}

/// New nodes, with the values between them.
#[derive(Debug)]
pub(crate) struct NewNodes {
    name: String,
    value_count_before: usize,
    values: Vec<ValueInfo>,
    nodes: Vec<Node>,
}

impl NewNodes {
    /// No nodes yet; those added are named after the root.
    pub(crate) fn new(view: &View<'_>, root: usize) -> Self {
        Self {
            name: view.node(root).name.clone(),
            value_count_before: view.graph().values().len(),
            values: Vec::new(),
            nodes: Vec::new(),
        }
    }

    fn add_value(&mut self, info: ValueInfo) -> ValueId {
        let id = ValueId::from_index(self.value_count_before + self.values.len());
        self.values.push(info);
        id
    }

    fn next_name(&self, kind: &str) -> String {
        format!("{}/{kind}_{}", self.name, self.value_count_before + self.values.len())
    }

    /// A new constant.
    pub(crate) fn constant(&mut self, tensor: Tensor) -> ValueId {
        let name = self.next_name("constant");
        self.add_value(ValueInfo { name, declared: None, constant: Some(tensor) })
    }

    /// A new value, for a node still to be added.
    pub(crate) fn value(&mut self) -> ValueId {
        let name = self.next_name("value");
        self.add_value(ValueInfo { name, ..ValueInfo::default() })
    }

    /// A new node with one new output.
    pub(crate) fn node(
        &mut self,
        operator: Arc<dyn Operator>,
        inputs: Vec<Option<ValueId>>,
    ) -> ValueId {
        let name = self.next_name(operator.name());
        let output = self.add_value(ValueInfo { name, ..ValueInfo::default() });
        self.last(operator, inputs, vec![Some(output)]);
        output
    }

    /// A new node that produces the given values: the root's outputs.
    pub(crate) fn last(
        &mut self,
        operator: Arc<dyn Operator>,
        inputs: Vec<Option<ValueId>>,
        outputs: Vec<Option<ValueId>>,
    ) {
        self.nodes.push(Node { name: self.name.clone(), operator, inputs, outputs, origin: None });
    }

    /// The patch.
    pub(crate) fn done(self) -> Option<Patch> {
        Some(Patch::Nodes(self))
    }
}

impl Patch {
    /// One node that produces the root's outputs.
    pub(crate) fn replace(
        view: &View<'_>,
        root: usize,
        operator: impl Operator,
        inputs: Vec<Option<ValueId>>,
    ) -> Option<Self> {
        let mut nodes = NewNodes::new(view, root);
        nodes.last(Arc::new(operator), inputs, view.node(root).outputs.clone());
        nodes.done()
    }

    /// Nothing: the root's first output is `value` itself. Not where that would rename a graph's output.
    pub(crate) fn alias(view: &View<'_>, root: usize, value: ValueId) -> Option<Self> {
        let output = view.node(root).output()?;
        let is_free = view.producer(value).is_some() && !view.is_output(value);
        (!view.is_output(output) || is_free).then_some(Patch::Alias(value))
    }

    /// Puts the patch in the place of node `root`.
    pub(super) fn apply(
        self,
        graph: &mut Graph,
        facts: &mut Facts,
        root: usize,
    ) -> Result<(), GraphError> {
        match self {
            Patch::Nodes(new) => {
                for info in new.values {
                    let fact = info.constant.clone().map_or_else(Fact::unknown, Fact::constant);
                    let id = graph.add_value(info);
                    facts.set(id, fact);
                }
                for node in &new.nodes {
                    let inferred = infer_node(node, facts)?;
                    for (id, fact) in node.outputs.iter().zip(inferred) {
                        if let Some(id) = id {
                            facts.set(*id, fact);
                        }
                    }
                }
                graph.nodes.splice(root..=root, new.nodes);
            }
            Patch::Alias(value) => {
                let removed = graph.nodes.remove(root);
                let Some(output) = removed.output() else { return Ok(()) };
                if graph.outputs.contains(&output) {
                    // The output keeps its name, so the value it stands for takes its place everywhere.
                    let fact = facts.of(value).clone();
                    facts.set(output, fact);
                    substitute(graph, value, output);
                } else {
                    substitute(graph, output, value);
                }
            }
        }
        Ok(())
    }
}

/// Puts `new` wherever `old` is read or produced.
fn substitute(graph: &mut Graph, old: ValueId, new: ValueId) {
    for node in &mut graph.nodes {
        for id in node.inputs.iter_mut().chain(&mut node.outputs).flatten() {
            if *id == old {
                *id = new;
            }
        }
    }
}
