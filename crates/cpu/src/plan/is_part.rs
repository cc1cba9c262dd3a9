//! Parts of a batch: whether the same graph for fewer entries computes just what it computes for these among all.

use weft_ir::axis::normalise_axis;
use weft_ir::operators::convolution::{ConvTranspose, Resize};
use weft_ir::operators::elementwise::Cast;
use weft_ir::operators::indexing::Gather;
use weft_ir::operators::layout::{Split, is_view};
use weft_ir::operators::reduction::{Reduce, Softmax};
use weft_ir::{Fact, Node, OptimizedGraph, ValueId};

use super::chunks::is_separable;
use super::slot::is_dense;

/// True where `part` is the graph of `whole` for one of so many equal parts of its batch, and computes each entry from that entry
/// alone. All that is given back is dense.
pub(crate) fn is_part(part: &OptimizedGraph, whole: &OptimizedGraph, count: usize) -> bool {
    let (nodes, all) = (part.graph().nodes(), whole.graph().nodes());
    let are_alike = |(own, other): (&Node, &Node)| {
        own.operator.name() == other.operator.name()
            && own.inputs == other.inputs
            && own.outputs == other.outputs
    };
    let is_constant =
        |id: &ValueId| [part, whole].iter().any(|graph| graph.graph().constant(*id).is_some());
    let moving = |node: &Node| {
        let values = node.inputs.iter().chain(&node.outputs).flatten().copied();
        values.filter(|id| !is_constant(id)).collect::<Vec<ValueId>>()
    };
    let is_cut = |id: ValueId| is_equal_part(part.fact(id), whole.fact(id), count);
    let is_given = |id: &ValueId| is_dense(whole.fact(*id)) && !is_constant(id);
    nodes.len() == all.len()
        && nodes.iter().zip(all).all(are_alike)
        && nodes.iter().flat_map(moving).all(is_cut)
        && nodes.iter().all(|node| keeps_entries_apart(node, whole))
        && whole.graph().outputs().iter().all(is_given)
}

/// True where one has so many times the entries of the other.
fn is_equal_part(part: &Fact, whole: &Fact, count: usize) -> bool {
    let (Some(own), Some(all)) = (part.shape(), whole.shape()) else { return false };
    let ([entries, each @ ..], [all_entries, each_of_all @ ..]) = (&own[..], &all[..]) else {
        return false;
    };
    part.data_type == whole.data_type && entries * count == *all_entries && each == each_of_all
}

/// True for operators that never mix entries of their first axis, where that is cut in all values.
fn keeps_entries_apart(node: &Node, graph: &OptimizedGraph) -> bool {
    let entries = |id: Option<ValueId>| graph.fact(id?).shape()?.first().copied();
    let is_behind = |axis: i64| {
        let rank = node.input(0).and_then(|id| graph.fact(id).rank()).unwrap_or(0);
        normalise_axis(axis, rank).is_ok_and(|axis| axis > 0)
    };
    if let Some(split) = node.is::<Split>() {
        return is_behind(split.axis);
    }
    if let Some(softmax) = node.is::<Softmax>() {
        return is_behind(softmax.axis);
    }
    if node.is::<Resize>().is_some() {
        return entries(node.input(0)) == entries(node.output());
    }
    if let Some(gather) = node.is::<Gather>() {
        // Each index takes its own of a table, or all entries take the same.
        let is_constant =
            |index| node.input(index).is_some_and(|id| graph.graph().constant(id).is_some());
        return is_constant(0) && gather.axis == 0 || is_constant(1) && is_behind(gather.axis);
    }
    // What a reduction over the first axis gives is not cut.
    is_separable(node, graph)
        || is_view(&*node.operator)
        || node.is::<Reduce>().is_some()
        || node.is::<Cast>().is_some()
        || node.is::<ConvTranspose>().is_some()
}

#[cfg(test)]
mod tests {
    use weft_ir::{Attributes, DataType, Dimension, GraphBuilder, Tensor};

    use super::*;

    /// One operator on a batch of four by four, and constants.
    fn graph_of(
        operator: &str,
        attributes: Attributes,
        constants: &[Tensor],
        batch: usize,
    ) -> OptimizedGraph {
        let mut builder = GraphBuilder::new("one", 18);
        let dimensions =
            [Dimension::Symbol("batch".into()), Dimension::Known(4), Dimension::Known(4)];
        let mut inputs = vec![builder.symbolic_input("x", DataType::F32, &dimensions)];
        for (place, constant) in constants.iter().enumerate() {
            inputs.push(builder.constant(&format!("c{place}"), constant.clone()));
        }
        let output = builder.node(operator, &inputs, attributes);
        builder.output("y", output);
        builder.finish().unwrap().specialise(&[vec![batch, 4, 4]]).unwrap()
    }

    #[test]
    fn operators_that_mix_entries_have_no_parts() {
        let axis = |axis: i64| Attributes::new().with("axis", axis);
        let order = |order: [i64; 3]| Attributes::new().with("perm", order.to_vec());
        let axes = |axes: Vec<i64>| [Tensor::vector(axes)];
        let none: &[Tensor] = &[];
        for (operator, attributes, constants, expected) in [
            ("Relu", Attributes::new(), none, true),
            ("Softmax", axis(-1), none, true),
            ("Softmax", axis(0), none, false),
            ("Transpose", order([0, 2, 1]), none, true),
            ("Transpose", order([1, 0, 2]), none, false),
            ("Split", axis(1), &[Tensor::vector(vec![4i64])], true),
            ("Split", axis(0), none, false),
            ("ReduceMean", Attributes::new(), &axes(vec![1, 2]), true),
            ("ReduceMean", Attributes::new(), &axes(vec![0, 1]), false),
            ("Gather", axis(1), &axes(vec![0]), true),
            ("Gather", axis(0), &axes(vec![1, 0, 3, 2]), false),
            ("Reshape", Attributes::new(), &axes(vec![-1, 16]), true),
            ("Reshape", Attributes::new(), &axes(vec![16, -1]), false),
            ("CumSum", Attributes::new(), &[Tensor::scalar(0i64)], false),
            ("Add", Attributes::new(), &[Tensor::filled(vec![4, 4], 1f32).unwrap()], true),
        ] {
            let of = |batch| graph_of(operator, attributes.clone(), constants, batch);
            assert_eq!(is_part(&of(2), &of(4), 2), expected, "{operator} {attributes:?}");
        }
    }

    #[test]
    fn parts_have_equal_shares_of_the_batch() {
        let of = |batch| graph_of("Relu", Attributes::new(), &[], batch);
        assert!(is_part(&of(2), &of(6), 3) && !is_part(&of(2), &of(6), 2));
        let other = graph_of("Sigmoid", Attributes::new(), &[], 2);
        assert!(!is_part(&other, &of(4), 2));
    }
}
