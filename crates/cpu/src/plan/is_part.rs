//! Parts of a batch: whether the same graph for fewer entries computes just what it computes for these among all.

use weft_ir::axis::normalise_axis;
use weft_ir::operators::convolution::{ConvTranspose, MaxPool, Resize};
use weft_ir::operators::elementwise::Cast;
use weft_ir::operators::indexing::Gather;
use weft_ir::operators::layout::{Split, is_view};
use weft_ir::operators::reduction::{Reduce, Softmax};
use weft_ir::{Fact, Node, OptimizedGraph, Tensor, ValueId};

use super::chunks::is_separable;
use super::slot::is_dense;

/// The fewest entries of a part of a batch: products of one row add in another order than those of several.
pub(crate) const LEAST_ENTRIES: usize = 2;

/// The input of [`Resize`] that says how large the output is.
const SIZES: usize = 3;

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
        && nodes.iter().zip(all).all(|pair| has_same_parameters(pair, part, whole))
        && whole.graph().outputs().iter().all(is_given)
}

/// True where one has so many times the entries of the other, which are enough.
fn is_equal_part(part: &Fact, whole: &Fact, count: usize) -> bool {
    let (Some(own), Some(all)) = (part.shape(), whole.shape()) else { return false };
    let ([entries, each @ ..], [all_entries, each_of_all @ ..]) = (&own[..], &all[..]) else {
        return false;
    };
    // Views may leave a value fewer entries than the inputs have.
    let is_equal = *entries >= LEAST_ENTRIES && entries * count == *all_entries;
    part.data_type == whole.data_type && is_equal && each == each_of_all
}

/// True where a node of a part computes by the attributes and constants of that of the whole batch: what a graph makes of the number
/// of entries is a constant at known shapes. Where they say no more than the shape of the output, they may differ.
fn has_same_parameters(
    (own, other): (&Node, &Node),
    part: &OptimizedGraph,
    whole: &OptimizedGraph,
) -> bool {
    if is_view(&*own.operator) {
        return true;
    }
    let is_size = |index: usize| own.is::<Resize>().is_some() && index == SIZES;
    let is_same = |(index, id): (usize, &Option<ValueId>)| {
        let constants = [part, whole].map(|graph| id.and_then(|id| graph.graph().constant(id)));
        match constants {
            [Some(own), Some(all)] => is_size(index) || is_same_tensor(own, all),
            [None, None] => true,
            _ => false,
        }
    };
    own.inputs.iter().enumerate().all(is_same)
        && format!("{:?}", own.operator) == format!("{:?}", other.operator)
}

/// True for equal tensors. Weights of a model file are not read for it.
fn is_same_tensor(own: &Tensor, other: &Tensor) -> bool {
    let source = |tensor: &Tensor| tensor.source_bytes().map(|bytes| bytes.as_ptr_range());
    let is_one = source(own).is_some() && source(own) == source(other);
    let is_alike = own.shape() == other.shape() && own.data_type() == other.data_type();
    is_alike && (is_one || own == other)
}

/// True for operators that never mix entries of their first axis, where that is cut in all values.
fn keeps_entries_apart(node: &Node, graph: &OptimizedGraph) -> bool {
    let entries = |id: Option<ValueId>| graph.fact(id?).shape()?.first().copied();
    let is_behind = |axis: i64| {
        let rank = node.input(0).and_then(|id| graph.fact(id).rank()).unwrap_or(0);
        normalise_axis(axis, rank).is_ok_and(|axis| axis > 0)
    };
    if node.is::<MaxPool>().is_some_and(|pool| pool.with_indices) {
        // They are positions among all entries.
        return false;
    }
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
            // A part of two entries has one row of this.
            ("Reshape", Attributes::new(), &axes(vec![-1, 32]), false),
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

    /// A graph of a batch of rows of four numbers, with what `add` gives back as its output.
    fn built(batch: usize, add: impl Fn(&mut GraphBuilder, ValueId) -> ValueId) -> OptimizedGraph {
        let mut builder = GraphBuilder::new("built", 18);
        let dimensions =
            [Dimension::Symbol("batch".into()), Dimension::Known(2), Dimension::Known(4)];
        let x = builder.symbolic_input("x", DataType::F32, &dimensions);
        let output = add(&mut builder, x);
        builder.output("y", output);
        builder.finish().unwrap().specialise(&[vec![batch, 2, 4]]).unwrap()
    }

    #[test]
    fn what_is_computed_from_the_number_of_entries_has_no_parts() {
        let none = Attributes::new;
        let entries = |builder: &mut GraphBuilder, x: ValueId| {
            let shape = builder.node("Shape", &[x], none());
            let first = builder.constant("first", Tensor::scalar(0i64));
            builder.node("Gather", &[shape, first], none())
        };
        let as_float = Attributes::new().with("to", 1i64);
        let divided = |builder: &mut GraphBuilder, x: ValueId| {
            let active = builder.node("Relu", &[x], none());
            let count = entries(builder, x);
            let count = builder.node("Cast", &[count], as_float.clone());
            builder.node("Div", &[active, count], none())
        };
        // A convolution takes what follows it into itself, as an attribute.
        let clipped = |builder: &mut GraphBuilder, x: ValueId| {
            let kernel = Tensor::filled(vec![2, 2, 1], 1f32).unwrap();
            let kernel = builder.constant("kernel", kernel);
            let sum = builder.node("Conv", &[x, kernel], none());
            let count = entries(builder, x);
            let count = builder.node("Cast", &[count], as_float.clone());
            let least = builder.constant("least", Tensor::scalar(0f32));
            builder.node("Clip", &[sum, least, count], none())
        };
        // Views alone may know how many there are.
        let flattened = |builder: &mut GraphBuilder, x: ValueId| {
            let count = entries(builder, x);
            let axis = builder.constant("axis", Tensor::vector(vec![0i64]));
            let count = builder.node("Unsqueeze", &[count, axis], none());
            let each = builder.constant("each", Tensor::vector(vec![8i64]));
            let along = Attributes::new().with("axis", 0i64);
            let shape = builder.node("Concat", &[count, each], along);
            let flat = builder.node("Reshape", &[x, shape], none());
            builder.node("Softmax", &[flat], none())
        };
        let positions = |builder: &mut GraphBuilder, x: ValueId| {
            let window = Attributes::new().with("kernel_shape", vec![2i64]);
            let pooled = builder.node_with("MaxPool", &[Some(x)], 2, window);
            let positions = builder.node("Cast", &[pooled[1]], as_float.clone());
            builder.node("Add", &[pooled[0], positions], none())
        };
        let is_part_of = |add: &dyn Fn(&mut GraphBuilder, ValueId) -> ValueId| {
            is_part(&built(2, add), &built(4, add), 2)
        };
        assert!(!is_part_of(&divided), "a constant");
        assert!(!is_part_of(&clipped), "an attribute");
        assert!(!is_part_of(&positions), "positions among all entries");
        assert!(is_part_of(&flattened), "a shape");
    }

    #[test]
    fn weights_of_a_file_are_known_by_where_they_lie() {
        let numbers: Vec<u8> = (0..64).collect();
        let mapped = |bytes: Vec<u8>| Tensor::from_bytes::<f32>(vec![16], bytes.into()).unwrap();
        let weights = mapped(numbers.clone());
        assert!(is_same_tensor(&weights, &weights.clone()));
        assert!(!is_same_tensor(&weights, &weights.reshaped(vec![4, 4]).unwrap()));
        assert!(is_same_tensor(&weights, &mapped(numbers.clone())));
        assert!(!is_same_tensor(&weights, &mapped([vec![9], numbers[1..].to_vec()].concat())));
        // These are equal to nothing, but one of them is the other.
        let no_numbers = mapped(vec![0xFF; 64]);
        assert!(no_numbers != no_numbers && is_same_tensor(&no_numbers, &no_numbers.clone()));
    }
}
