//! Dead code: nodes whose outputs nobody reads are removed.

use crate::graph::Graph;

/// Removes every node that no output depends on, and the constants that nothing reads any more.
pub(super) fn remove(graph: &mut Graph) {
    let mut live = vec![false; graph.values().len()];
    graph.outputs().iter().for_each(|id| live[id.index()] = true);
    let mut kept = Vec::with_capacity(graph.nodes.len());
    for mut node in std::mem::take(&mut graph.nodes).into_iter().rev() {
        if !node.outputs.iter().flatten().any(|id| live[id.index()]) {
            continue;
        }
        node.inputs.iter().flatten().for_each(|id| live[id.index()] = true);
        // Outputs past the first that nobody reads need not be computed.
        for output in node.outputs.iter_mut().skip(1) {
            if output.is_some_and(|id| !live[id.index()]) {
                *output = None;
            }
        }
        while node.outputs.len() > 1 && node.outputs.last() == Some(&None) {
            node.outputs.pop();
        }
        kept.push(node);
    }
    kept.reverse();
    graph.nodes = kept;
    for id in graph.value_ids() {
        if !live[id.index()] && !graph.inputs().contains(&id) {
            graph.value_mut(id).constant = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::GraphBuilder;
    use crate::data_type::DataType;

    #[test]
    fn only_what_an_output_needs_stays() {
        let mut builder = GraphBuilder::new("dead", 21);
        let x = builder.input("x", DataType::F32, &[2]);
        let live = builder.node("Relu", &[x], Attributes::new());
        let dead = builder.node("Relu", &[live], Attributes::new());
        builder.node("Relu", &[dead], Attributes::new());
        builder.output("y", live);
        let mut graph = builder.finish().unwrap();
        remove(&mut graph);
        assert_eq!(graph.nodes().len(), 1);
        assert_eq!(graph.nodes()[0].output(), Some(live));
    }
}
