//! Who reads each value of a graph.

use std::collections::HashMap;

use weft_ir::{OptimizedGraph, ValueId};

/// Who reads each value.
pub(super) struct Users {
    /// The only node that reads it; `None` where there are several.
    only: HashMap<ValueId, Option<usize>>,
}

impl Users {
    pub(super) fn of(graph: &OptimizedGraph) -> Self {
        let mut only: HashMap<ValueId, Option<usize>> = HashMap::new();
        for (index, node) in graph.graph().nodes().iter().enumerate() {
            for &id in node.inputs.iter().flatten() {
                let user = only.entry(id).or_insert(Some(index));
                if *user != Some(index) {
                    *user = None;
                }
            }
        }
        // What the graph gives back is needed outside, whoever else reads it.
        only.extend(graph.graph().outputs().iter().map(|&id| (id, None)));
        Self { only }
    }

    /// True where a node is the only one that reads a value, and nobody outside of the graph does.
    pub(super) fn is_only(&self, id: ValueId, node: usize) -> bool {
        self.only.get(&id) == Some(&Some(node))
    }
}
