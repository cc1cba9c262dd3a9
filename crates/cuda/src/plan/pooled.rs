//! Convolutions and the pools that alone read them, which one kernel may compute.

use weft_ir::OptimizedGraph;
use weft_ir::operators::convolution::{Conv, MaxPool};
use weft_ir::operators::fused::FusedConv;

use super::users::Users;

/// Joins groups of one convolution and one pool each. They run where the pool stood: nothing between them needs what the
/// convolution computes.
pub(crate) fn join(graph: &OptimizedGraph, mut groups: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let nodes = graph.graph().nodes();
    let users = Users::of(graph);
    for place in 0..groups.len() {
        let [pool] = groups[place][..] else { continue };
        if nodes[pool].is::<MaxPool>().is_none() {
            continue;
        }
        let Some(pooled) = nodes[pool].input(0).filter(|&id| users.is_only(id, pool)) else {
            continue;
        };
        let computes = |group: &Vec<usize>| match group[..] {
            [node] => {
                let node = &nodes[node];
                node.output() == Some(pooled)
                    && (node.is::<FusedConv>().is_some() || node.is::<Conv>().is_some())
            }
            _ => false,
        };
        if let Some(before) = groups[..place].iter().position(computes) {
            let conv = std::mem::take(&mut groups[before]);
            groups[place].splice(0..0, conv);
        }
    }
    groups.retain(|group| !group.is_empty());
    groups
}

#[cfg(test)]
mod tests {
    use weft_ir::{Attributes, DataType, GraphBuilder, Tensor, ValueId};

    use super::*;

    /// Two convolutions, each with a pool, the second of which something else reads too.
    #[test]
    fn a_convolution_that_a_pool_alone_reads_is_joined_with_it() {
        let mut builder = GraphBuilder::new("pools", 17);
        let image = builder.input("x", DataType::F32, &[1, 2, 8, 8]);
        let conv = |builder: &mut GraphBuilder, of: ValueId, seed: f32| {
            let filters = Tensor::from_vec(vec![2, 2, 1, 1], vec![seed; 4]).unwrap();
            let filters = builder.constant(&format!("w{seed}"), filters);
            builder.node("Conv", &[of, filters], Attributes::new())
        };
        let pool = |builder: &mut GraphBuilder, of: ValueId| {
            let attributes = Attributes::new()
                .with("kernel_shape", vec![2i64, 2])
                .with("strides", vec![2i64, 2]);
            builder.node("MaxPool", &[of], attributes)
        };
        let first = conv(&mut builder, image, 1.0);
        let pooled = pool(&mut builder, first);
        let second = conv(&mut builder, pooled, 2.0);
        let again = pool(&mut builder, second);
        builder.output("second", second);
        builder.output("again", again);
        let graph = builder.finish().unwrap().specialise_plainly(&[vec![1, 2, 8, 8]]).unwrap();
        let alone = (0..graph.graph().nodes().len()).map(|node| vec![node]).collect();
        assert_eq!(join(&graph, alone), [vec![0, 1], vec![2], vec![3]]);
    }
}
