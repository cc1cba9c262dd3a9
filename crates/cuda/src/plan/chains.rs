//! Which nodes are computed together: runs of elementwise operators whose values nothing else needs.

use std::collections::HashMap;

use weft_ir::{OptimizedGraph, ValueId};

use super::select::elementwise::has_code;
use super::users::Users;
use crate::Precision;

/// The most operators of one chain: what a kernel keeps in registers.
const MAX_CHAIN_NODES: usize = 32;
/// The most values that a chain reads.
const MAX_CHAIN_INPUTS: usize = 12;

/// The nodes in groups, by index: each node is in exactly one, a group runs as one kernel where it has several nodes,
/// and groups and nodes stand in an order in which they can run. A group's only value that others read is its last
/// node's.
pub(crate) fn group(graph: &OptimizedGraph, precision: Precision) -> Vec<Vec<usize>> {
    let nodes = graph.graph().nodes();
    let can_join: Vec<bool> = nodes.iter().map(|node| has_code(graph, node, precision)).collect();
    let users = Users::of(graph);
    let mut producer: HashMap<ValueId, usize> = HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        let mut members = vec![index];
        let mut inputs = distinct(node.inputs.iter().copied().flatten());
        if can_join[index] {
            for id in inputs.clone() {
                let Some(&before) = producer.get(&id) else { continue };
                if !can_join[before] || !users.is_only(id, index) {
                    continue;
                }
                let of_chain = groups[before].iter().flat_map(|&node| nodes[node].inputs.iter());
                let inside =
                    |id: &ValueId| producer.get(id).is_some_and(|n| groups[before].contains(n));
                let joined = distinct(
                    inputs
                        .iter()
                        .copied()
                        .filter(|&input| input != id)
                        .chain(of_chain.copied().flatten().filter(|id| !inside(id))),
                );
                let fits = joined.len() <= MAX_CHAIN_INPUTS
                    && members.len() + groups[before].len() <= MAX_CHAIN_NODES;
                if fits {
                    inputs = joined;
                    let chain = std::mem::take(&mut groups[before]);
                    members.extend(chain);
                }
            }
        }
        members.sort_unstable();
        producer.extend(node.outputs.iter().flatten().map(|&id| (id, index)));
        groups.push(members);
    }
    groups.retain(|group| !group.is_empty());
    groups
}

fn distinct(ids: impl Iterator<Item = ValueId>) -> Vec<ValueId> {
    let mut all: Vec<ValueId> = ids.collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weft_ir::{Attributes, DataType, GraphBuilder};

    fn grouped(builder: GraphBuilder, shapes: &[Vec<usize>]) -> (OptimizedGraph, Vec<Vec<usize>>) {
        let graph = builder.finish().unwrap().specialise_plainly(shapes).unwrap();
        let groups = group(&graph, Precision::F16);
        (graph, groups)
    }

    #[test]
    fn a_value_needed_elsewhere_ends_its_chain() {
        let mut builder = GraphBuilder::new("fork", 18);
        let x = builder.input("x", DataType::F32, &[2, 8]);
        let a = builder.node("Exp", &[x], Attributes::new());
        let b = builder.node("Neg", &[a], Attributes::new());
        let c = builder.node("Abs", &[b], Attributes::new());
        let d = builder.node("Sqrt", &[b], Attributes::new());
        let e = builder.node("Add", &[c, d], Attributes::new());
        builder.output("e", e);
        let (_, groups) = grouped(builder, &[vec![2, 8]]);
        assert_eq!(groups, [vec![0, 1], vec![2, 3, 4]]);
    }

    #[test]
    fn chains_run_through_broadcasts_and_casts_and_end_at_other_operators() {
        let mut builder = GraphBuilder::new("gate", 18);
        let x = builder.input("x", DataType::F32, &[2, 4, 8]);
        let pooled = builder.node(
            "ReduceMean",
            &[x],
            Attributes::new().with("axes", vec![1i64]).with("keepdims", 1i64),
        );
        let gate = builder.node("Sigmoid", &[pooled], Attributes::new());
        let y = builder.node("Mul", &[x, gate], Attributes::new());
        let z = builder.node("Cast", &[y], Attributes::new().with("to", 7i64));
        let s = builder.node("Softmax", &[y], Attributes::new());
        builder.output("z", z);
        builder.output("s", s);
        let (_, groups) = grouped(builder, &[vec![2, 4, 8]]);
        assert_eq!(groups, [vec![0], vec![1, 2], vec![3], vec![4]]);
    }

    #[test]
    fn an_output_of_the_graph_is_stored() {
        let mut builder = GraphBuilder::new("outputs", 18);
        let x = builder.input("x", DataType::F32, &[8]);
        let a = builder.node("Exp", &[x], Attributes::new());
        let b = builder.node("Mul", &[a, a], Attributes::new());
        builder.output("a", a);
        builder.output("b", b);
        assert_eq!(grouped(builder, &[vec![8]]).1, [vec![0], vec![1]]);
    }

    #[test]
    fn a_long_run_is_cut() {
        let mut builder = GraphBuilder::new("long", 18);
        let mut x = builder.input("x", DataType::F32, &[8]);
        for _ in 0..3 * MAX_CHAIN_NODES + 1 {
            x = builder.node("Exp", &[x], Attributes::new());
        }
        builder.output("x", x);
        let (_, groups) = grouped(builder, &[vec![8]]);
        let lengths: Vec<usize> = groups.iter().map(Vec::len).collect();
        assert_eq!(lengths, [MAX_CHAIN_NODES, MAX_CHAIN_NODES, MAX_CHAIN_NODES, 1]);
    }

    proptest! {
        #[test]
        fn every_node_runs_once_and_after_what_it_needs(
            steps in prop::collection::vec((0u8..6, any::<usize>(), any::<usize>()), 1..40)
        ) {
            let mut builder = GraphBuilder::new("random", 18);
            let mut values = vec![builder.input("x", DataType::F32, &[4, 8])];
            for &(kind, left, right) in &steps {
                let (left, right) = (values[left % values.len()], values[right % values.len()]);
                let none = Attributes::new;
                values.push(match kind {
                    0 | 1 => builder.node("Exp", &[left], none()),
                    2 | 3 => builder.node("Add", &[left, right], none()),
                    4 => builder.node("Max", &[left, right, left], none()),
                    _ => builder.node("Softmax", &[left], none()),
                });
            }
            builder.output("y", *values.last().unwrap());
            let (graph, groups) = grouped(builder, &[vec![4, 8]]);
            let nodes = graph.graph().nodes();
            let mut seen: Vec<usize> = groups.concat();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..nodes.len()).collect::<Vec<_>>());

            let mut known: Vec<ValueId> = graph.graph().inputs().to_vec();
            for group in &groups {
                let inside: Vec<ValueId> =
                    group.iter().filter_map(|&node| nodes[node].output()).collect();
                for &node in group {
                    for id in nodes[node].inputs.iter().flatten() {
                        prop_assert!(known.contains(id) || inside.contains(id));
                    }
                }
                let (last, between) = inside.split_last().unwrap();
                for id in between {
                    let outside = nodes.iter().enumerate().any(|(index, node)| {
                        !group.contains(&index) && node.inputs.contains(&Some(*id))
                    });
                    prop_assert!(!outside && !graph.graph().outputs().contains(id));
                }
                known.push(*last);
            }
        }
    }
}
