//! Products that read the same rows: computed by one launch, since each by itself leaves SMs idle.

use weft_ir::operators::fused::FusedMatMul;
use weft_ir::{Node, OptimizedGraph};

/// The most products of one launch.
const MAX_SIBLINGS: usize = 4;

/// Joins groups of one product each that multiply the same value by constant matrices of one shape and end alike. They
/// run where the first of them stood: all they need besides the value are constants.
pub(crate) fn join(graph: &OptimizedGraph, groups: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let nodes = graph.graph().nodes();
    let mut joined: Vec<Vec<usize>> = Vec::with_capacity(groups.len());
    for group in groups {
        let sibling_of = |other: &&mut Vec<usize>| {
            other.len() < MAX_SIBLINGS
                && group.len() == 1
                && are_siblings(graph, &nodes[other[0]], &nodes[group[0]])
        };
        match joined.iter_mut().find(sibling_of) {
            Some(other) => other.extend(group),
            None => joined.push(group),
        }
    }
    joined
}

fn are_siblings(graph: &OptimizedGraph, left: &Node, right: &Node) -> bool {
    let (Some(first), Some(second)) = (left.is::<FusedMatMul>(), right.is::<FusedMatMul>()) else {
        return false;
    };
    let matrix = |node: &Node| Some(graph.graph().constant(node.input(1)?)?.shape().to_vec());
    left.input(0) == right.input(0)
        && matrix(left).is_some()
        && matrix(left) == matrix(right)
        && first.transpose_right == second.transpose_right
        && first.epilogue == second.epilogue
        && !first.epilogue.has_residual
        && left.input(2).is_some() == right.input(2).is_some()
}

#[cfg(test)]
mod tests {
    use weft_ir::{Attributes, DataType, GraphBuilder, Tensor, ValueId};

    use super::*;

    /// Three products of the same input, the third with another size, and one of the first's result.
    fn graph() -> OptimizedGraph {
        let mut builder = GraphBuilder::new("siblings", 17);
        let input = builder.input("x", DataType::F32, &[2, 8]);
        let mut product = |of: ValueId, columns: usize, seed: f32| {
            let elements = (0..8 * columns).map(|index| seed + index as f32).collect();
            let matrix = Tensor::from_vec(vec![8, columns], elements).unwrap();
            let matrix = builder.constant(&format!("w{seed}"), matrix);
            builder.node("MatMul", &[of, matrix], Attributes::new())
        };
        let first = product(input, 8, 1.0);
        let second = product(input, 8, 2.0);
        let third = product(input, 4, 3.0);
        let after = product(first, 8, 4.0);
        for (name, id) in [("second", second), ("third", third), ("after", after)] {
            builder.output(name, id);
        }
        builder.finish().unwrap().specialise(&[vec![2, 8]]).unwrap()
    }

    #[test]
    fn products_of_the_same_rows_and_sizes_are_joined_where_the_first_stood() {
        let graph = graph();
        let alone: Vec<Vec<usize>> = (0..graph.graph().nodes().len()).map(|n| vec![n]).collect();
        let joined = join(&graph, alone.clone());
        assert_eq!(joined, [vec![0, 1], vec![2], vec![3]]);
        let mut members: Vec<usize> = joined.concat();
        members.sort_unstable();
        assert_eq!(members, alone.concat());
    }
}
