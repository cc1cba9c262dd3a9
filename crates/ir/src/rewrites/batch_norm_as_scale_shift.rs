//! A batch normalisation that no convolution absorbs becomes one factor and one term per channel.

use std::sync::Arc;

use super::fold_channel_arithmetic::map_of_batch_norm;
use super::patch::NewNodes;
use super::{Patch, Rewrite, View};
use crate::data_type::DataType;
use crate::operators::fused::ScaleShift;
use crate::tensor::Tensor;

pub(crate) const BATCH_NORM_AS_SCALE_SHIFT: Rewrite =
    Rewrite { name: "batch-norm-as-scale-shift", rule };

fn rule(view: &View<'_>, root: usize) -> Option<Patch> {
    let (input, map, channel_axis) = map_of_batch_norm(view, root)?;
    if view.fact(input).data_type != Some(DataType::F32) {
        return None;
    }
    let mut nodes = NewNodes::new(view, root);
    let scale = nodes.constant(Tensor::vector(map.scale));
    let shift = nodes.constant(Tensor::vector(map.shift));
    let operator = Arc::new(ScaleShift { channel_axis, activation: None });
    nodes.last(
        operator,
        vec![Some(input), Some(scale), Some(shift)],
        view.node(root).outputs.clone(),
    );
    nodes.done()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, finish, node, weights};
    use super::*;
    use crate::builder::GraphBuilder;

    #[test]
    fn it_computes_the_same() {
        let mut builder = GraphBuilder::new("norm", 17);
        let x = builder.input("x", DataType::F32, &[2, 3, 4]);
        let [gamma, beta, mean] = [0; 3].map(|_| weights(&mut builder, &[3]));
        let variance = builder.constant("variance", Tensor::vector(vec![0.5f32, 1.0, 2.0]));
        let norm = node(&mut builder, "BatchNormalization", &[x, gamma, beta, mean, variance]);
        let graph = finish(builder, norm);
        assert_eq!(check(&graph, BATCH_NORM_AS_SCALE_SHIFT), ["ScaleShift"]);
    }
}
