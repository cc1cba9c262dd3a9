//! Transposes that follow each other become one, and those that move no element become reshapes.

use std::sync::Arc;

use super::patch::NewNodes;
use super::{Patch, Rewrite, View};
use crate::operators::layout::{Reshape, Transpose};
use crate::tensor::Tensor;

pub(crate) const MERGE_TRANSPOSES: Rewrite = Rewrite { name: "merge-transposes", rule: merge };
pub(crate) const TRANSPOSE_AS_RESHAPE: Rewrite =
    Rewrite { name: "transpose-as-reshape", rule: as_reshape };

pub(crate) const SHARE_TRANSPOSES: Rewrite = Rewrite { name: "share-transposes", rule: share };

/// A value that was transposed the same way before is not transposed again.
fn share(view: &View<'_>, root: usize) -> Option<Patch> {
    let node = view.node(root);
    let input = node.input(0)?;
    let rank = view.rank(input)?;
    let permutation = node.is::<Transpose>()?.permutation_for(rank).ok()?;
    let earlier = view.readers(input).take_while(|(index, _)| *index < root).find(|(_, reader)| {
        let other = reader.is::<Transpose>();
        other.is_some_and(|other| {
            other.permutation_for(rank).is_ok_and(|other| other == permutation)
        })
    });
    let (_, earlier) = earlier?;
    Patch::alias(view, root, earlier.output()?)
}

fn merge(view: &View<'_>, root: usize) -> Option<Patch> {
    let node = view.node(root);
    let middle = node.input(0)?;
    let outer = node.is::<Transpose>()?.permutation_for(view.rank(middle)?).ok()?;
    let (producer, inner) = view.produced_by::<Transpose>(middle)?;
    let source = producer.input(0)?;
    let inner = inner.permutation_for(outer.len()).ok()?;
    let permutation: Vec<usize> = outer.iter().map(|&axis| inner[axis]).collect();
    if permutation.is_sorted()
        && let Some(patch) = Patch::alias(view, root, source)
    {
        return Some(patch);
    }
    Patch::replace(view, root, Transpose { permutation: Some(permutation) }, vec![Some(source)])
}

/// Only axes of size 1 change places, so the elements stay in order.
fn as_reshape(view: &View<'_>, root: usize) -> Option<Patch> {
    let node = view.node(root);
    let input = node.input(0)?;
    let shape = view.shape(input)?;
    let permutation = node.is::<Transpose>()?.permutation_for(shape.len()).ok()?;
    let moved: Vec<usize> = permutation.iter().copied().filter(|&axis| shape[axis] != 1).collect();
    if !moved.is_sorted() || permutation.is_sorted() {
        return None;
    }
    let target: Vec<i64> = permutation.iter().map(|&axis| shape[axis] as i64).collect();
    let mut nodes = NewNodes::new(view, root);
    let target = nodes.constant(Tensor::vector(target));
    nodes.last(
        Arc::new(Reshape { allow_zero: true }),
        vec![Some(input), Some(target)],
        node.outputs.clone(),
    );
    nodes.done()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, finish};
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::GraphBuilder;
    use crate::data_type::DataType;
    use crate::graph::ValueId;

    fn turn(b: &mut GraphBuilder, x: ValueId, permutation: &[i64]) -> ValueId {
        b.node("Transpose", &[x], Attributes::new().with("perm", permutation))
    }

    #[test]
    fn two_transposes_are_one_and_opposites_are_none() {
        for (second, expected) in [(&[1, 0, 2][..], 1), (&[1, 2, 0], 1), (&[2, 0, 1], 1)] {
            let mut b = GraphBuilder::new("twice", 17);
            let x = b.input("x", DataType::F32, &[2, 3, 4]);
            let relu = b.node("Relu", &[x], Attributes::new());
            let first = turn(&mut b, relu, &[1, 2, 0]);
            let second_out = turn(&mut b, first, second);
            let relu = b.node("Relu", &[second_out], Attributes::new());
            let graph = finish(b, relu);
            let left =
                check(&graph, MERGE_TRANSPOSES).iter().filter(|name| **name == "Transpose").count();
            assert_eq!(left, if second == [2, 0, 1] { 0 } else { expected }, "{second:?}");
        }
    }

    #[test]
    fn equal_transposes_of_one_value_are_shared() {
        let mut b = GraphBuilder::new("shared", 17);
        let x = b.input("x", DataType::F32, &[2, 3]);
        let (first, second) = (turn(&mut b, x, &[1, 0]), turn(&mut b, x, &[1, 0]));
        let sum = b.node("Add", &[first, second], Attributes::new());
        let graph = finish(b, sum);
        assert_eq!(check(&graph, SHARE_TRANSPOSES), ["Transpose", "Add"]);
    }

    #[test]
    fn moving_an_axis_of_size_one_is_a_reshape() {
        for (shape, expected) in [([2, 1, 1, 5], "Reshape"), ([2, 3, 1, 5], "Transpose")] {
            let mut b = GraphBuilder::new("unit", 17);
            let x = b.input("x", DataType::F32, &shape);
            let turned = turn(&mut b, x, &[0, 3, 1, 2]);
            let graph = finish(b, turned);
            assert_eq!(check(&graph, TRANSPOSE_AS_RESHAPE), [expected]);
        }
    }
}
