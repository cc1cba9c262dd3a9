//! A sum with another value of the same shape joins the product before it.

use super::producers::{sole_conv, with_input};
use super::{Patch, Rewrite, View};
use crate::data_type::DataType;
use crate::graph::ValueId;
use crate::operators::elementwise::{Binary, BinaryFunction};
use crate::operators::fused::{FusedConv, FusedMatMul};

pub(crate) const FUSE_RESIDUAL: Rewrite = Rewrite { name: "fuse-residual", rule };

fn rule(view: &View<'_>, root: usize) -> Option<Patch> {
    let node = view.node(root);
    if node.is::<Binary>()?.function != BinaryFunction::Add {
        return None;
    }
    let (left, right) = (node.input(0)?, node.input(1)?);
    let shape = view.shape(left)?;
    let fits = view.shape(right)? == shape
        && [left, right].iter().all(|&id| {
            view.fact(id).data_type == Some(DataType::F32) && view.constant(id).is_none()
        });
    if !fits {
        return None;
    }
    // The later of two products has its residual ready, so it is the one that can take the other.
    let mut order = [(left, right), (right, left)];
    order.sort_by_key(|&(product, _)| {
        std::cmp::Reverse(view.producer(product).map(|(index, _)| index))
    });
    order.into_iter().find_map(|(product, residual)| fuse(view, root, product, residual))
}

fn fuse(view: &View<'_>, root: usize, product: ValueId, residual: ValueId) -> Option<Patch> {
    if let Some(parts) = sole_conv(view, product) {
        let operator =
            FusedConv { conv: parts.conv.clone(), epilogue: parts.epilogue.then_residual()? };
        return Patch::replace(view, root, operator, with_input(parts.node, 3, residual));
    }
    let (producer, operator) = view.produced_by::<FusedMatMul>(product)?;
    let operator = FusedMatMul { epilogue: operator.epilogue.then_residual()?, ..operator.clone() };
    view.has_one_use(product)
        .then(|| Patch::replace(view, root, operator, with_input(producer, 3, residual)))?
}

#[cfg(test)]
mod tests {
    use super::super::fuse_activation::FUSE_ACTIVATION;
    use super::super::testing::{check_stages, finish, node, weights};
    use super::*;
    use crate::builder::GraphBuilder;

    #[test]
    fn a_residual_block_becomes_one_operator_per_convolution() {
        let mut builder = GraphBuilder::new("block", 17);
        let x = builder.input("x", DataType::F32, &[2, 4, 5, 5]);
        let [a, b] = [0; 2].map(|_| weights(&mut builder, &[4, 4, 1, 1]));
        let first = node(&mut builder, "Conv", &[x, a]);
        let relu = node(&mut builder, "Relu", &[first]);
        let second = node(&mut builder, "Conv", &[relu, b]);
        let sum = node(&mut builder, "Add", &[second, x]);
        let out = node(&mut builder, "Relu", &[sum]);
        let graph = finish(builder, out);
        assert_eq!(
            check_stages(&graph, &[&[FUSE_ACTIVATION, FUSE_RESIDUAL]]),
            ["FusedConv", "FusedConv"]
        );
    }

    #[test]
    fn of_two_convolutions_only_one_takes_the_sum() {
        let mut builder = GraphBuilder::new("branches", 17);
        let x = builder.input("x", DataType::F32, &[2, 4, 5, 5]);
        let [a, b] = [0; 2].map(|_| weights(&mut builder, &[4, 4, 1, 1]));
        let left = node(&mut builder, "Conv", &[x, a]);
        let right = node(&mut builder, "Conv", &[x, b]);
        let sum = node(&mut builder, "Add", &[left, right]);
        let graph = finish(builder, sum);
        assert_eq!(check_stages(&graph, &[&[FUSE_RESIDUAL]]), ["Conv", "FusedConv"]);
    }

    #[test]
    fn a_sum_that_broadcasts_is_no_residual() {
        let mut builder = GraphBuilder::new("broadcast", 17);
        let x = builder.input("x", DataType::F32, &[2, 4, 5, 5]);
        let z = builder.input("z", DataType::F32, &[2, 4, 1, 1]);
        let w = weights(&mut builder, &[4, 4, 1, 1]);
        let conv = node(&mut builder, "Conv", &[x, w]);
        let sum = node(&mut builder, "Add", &[conv, z]);
        let graph = finish(builder, sum);
        assert_eq!(check_stages(&graph, &[&[FUSE_RESIDUAL]]), ["Conv", "Add"]);
    }
}
