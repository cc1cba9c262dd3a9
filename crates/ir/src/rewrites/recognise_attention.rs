//! Scaled dot-product attention written out as two products and a softmax.

use std::sync::Arc;

use super::factors::times_scalar;
use super::patch::NewNodes;
use super::{Patch, Rewrite, View};
use crate::broadcast::broadcast_shapes;
use crate::data_type::DataType;
use crate::graph::ValueId;
use crate::operators::elementwise::{Binary, BinaryFunction};
use crate::operators::fused::FusedAttention;
use crate::operators::layout::Transpose;
use crate::operators::linear::MatMul;
use crate::operators::reduction::Softmax;

pub(crate) const RECOGNISE_ATTENTION: Rewrite = Rewrite { name: "recognise-attention", rule };

/// From `[batch, sequence, heads, depth]` to `[batch, heads, sequence, depth]`, and back.
const SWAP_HEADS: [usize; 4] = [0, 2, 1, 3];
const SWAP_LAST: [usize; 4] = [0, 1, 3, 2];
/// From `[batch, sequence, heads, depth]` to `[batch, heads, depth, sequence]`.
const KEYS_AS_COLUMNS: [usize; 4] = [0, 2, 3, 1];

fn rule(view: &View<'_>, root: usize) -> Option<Patch> {
    let node = view.node(root);
    node.is::<MatMul>()?;
    let (probabilities, value) = (node.input(0)?, node.input(1)?);
    let scores_shape = view.shape(probabilities)?;
    let (softmax_node, softmax) = sole::<Softmax>(view, probabilities)?;
    let is_last_axis =
        scores_shape.len() == 4 && !softmax.flattens && matches!(softmax.axis, -1 | 3);
    if !is_last_axis || view.rank(value)? != 4 || view.fact(value).data_type != Some(DataType::F32)
    {
        return None;
    }
    let (product, scale, mask) = scores(view, softmax_node.input(0)?)?;
    let (product_node, _) = sole::<MatMul>(view, product)?;
    let (query, query_scale) = unscaled(view, product_node.input(0)?);
    let (columns, key_scale) = unscaled(view, product_node.input(1)?);
    let fits = match mask {
        None => true,
        Some(mask) => broadcast_shapes(&[&view.shape(mask)?, &scores_shape]).ok()? == scores_shape,
    };
    // Batch or heads that broadcast between Q and K are left to the general product.
    let query_shape = view.shape(query)?;
    if !fits
        || view.shape(columns)?[..2] != query_shape[..2]
        || view.shape(value)?[..2] != query_shape[..2]
    {
        return None;
    }
    let scale = scale * query_scale * key_scale;
    let mut nodes = NewNodes::new(view, root);
    let swapped =
        |permutation: &[usize; 4]| Arc::new(Transpose { permutation: Some(permutation.to_vec()) });
    let by_sequence = (
        transposed_from(view, query, &SWAP_HEADS),
        transposed_from(view, columns, &KEYS_AS_COLUMNS),
        transposed_from(view, value, &SWAP_HEADS),
    );
    if let (Some(query), Some(key), Some(value)) = by_sequence {
        let inputs = vec![Some(query), Some(key), Some(value), mask];
        let attended = nodes.node(Arc::new(FusedAttention { scale, sequence_major: true }), inputs);
        nodes.last(swapped(&SWAP_HEADS), vec![Some(attended)], node.outputs.clone());
        return nodes.done();
    }
    let key = match transposed_from(view, columns, &SWAP_LAST) {
        Some(key) => key,
        None => nodes.node(swapped(&SWAP_LAST), vec![Some(columns)]),
    };
    let inputs = vec![Some(query), Some(key), Some(value), mask];
    nodes.last(
        Arc::new(FusedAttention { scale, sequence_major: false }),
        inputs,
        node.outputs.clone(),
    );
    nodes.done()
}

fn sole<'a, T: crate::Operator>(view: &View<'a>, id: ValueId) -> Option<(&'a crate::Node, &'a T)> {
    view.has_one_use(id).then(|| view.produced_by::<T>(id))?
}

/// The product, its factor and the mask added to it, that a score is made of.
fn scores(view: &View<'_>, id: ValueId) -> Option<(ValueId, f32, Option<ValueId>)> {
    if let Some((node, binary)) = sole::<Binary>(view, id)
        && binary.function == BinaryFunction::Add
    {
        let (left, right) = (node.input(0)?, node.input(1)?);
        return [(left, right), (right, left)].into_iter().find_map(|(product, mask)| {
            let (product, scale) = unscaled(view, product);
            sole::<MatMul>(view, product).map(|_| (product, scale, Some(mask)))
        });
    }
    let (product, scale) = unscaled(view, id);
    Some((product, scale, None))
}

/// The value and its factor, where it is one times a scalar.
fn unscaled(view: &View<'_>, id: ValueId) -> (ValueId, f32) {
    let scaled = view.has_one_use(id).then(|| times_scalar(view, id)).flatten();
    scaled.unwrap_or((id, 1.0))
}

fn transposed_from(view: &View<'_>, id: ValueId, permutation: &[usize; 4]) -> Option<ValueId> {
    let (node, transpose) = view.produced_by::<Transpose>(id)?;
    (transpose.permutation.as_deref()? == permutation).then_some(node.input(0)?)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_stages, finish, node, scalar};
    use super::super::transposes::MERGE_TRANSPOSES;
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::GraphBuilder;

    struct Case {
        sequence_major: bool,
        mask: Option<&'static [usize]>,
        scale_query: bool,
        axis: i64,
    }

    fn attention(case: &Case) -> Vec<&'static str> {
        let mut b = GraphBuilder::new("attention", 17);
        let turn = |b: &mut GraphBuilder, x, permutation: &[usize]| {
            let permutation: Vec<i64> = permutation.iter().map(|&axis| axis as i64).collect();
            b.node("Transpose", &[x], Attributes::new().with("perm", permutation))
        };
        let shape = if case.sequence_major { [2, 3, 4, 5] } else { [2, 4, 3, 5] };
        let [mut q, mut k, mut v] =
            ["q", "k", "v"].map(|name| b.input(name, DataType::F32, &shape));
        if case.sequence_major {
            q = turn(&mut b, q, &SWAP_HEADS);
            k = turn(&mut b, k, &SWAP_HEADS);
            v = turn(&mut b, v, &SWAP_HEADS);
        }
        let columns = turn(&mut b, k, &SWAP_LAST);
        let factor = scalar(&mut b, 2.3);
        if case.scale_query {
            q = node(&mut b, "Mul", &[q, factor]);
        }
        let mut scores = node(&mut b, "MatMul", &[q, columns]);
        if !case.scale_query {
            scores = node(&mut b, "Div", &[scores, factor]);
        }
        if let Some(mask) = case.mask {
            let mask = b.input("mask", DataType::F32, mask);
            scores = node(&mut b, "Add", &[scores, mask]);
        }
        let softmax = b.node("Softmax", &[scores], Attributes::new().with("axis", case.axis));
        let mut result = node(&mut b, "MatMul", &[softmax, v]);
        if case.sequence_major {
            result = turn(&mut b, result, &SWAP_HEADS);
        }
        let graph = finish(b, result);
        check_stages(&graph, &[&[MERGE_TRANSPOSES, RECOGNISE_ATTENTION]])
    }

    #[test]
    fn the_usual_forms_are_one_operator() {
        for mask in [None, Some(&[2, 1, 1, 3][..]), Some(&[3, 3])] {
            for scale_query in [false, true] {
                for sequence_major in [false, true] {
                    let case = Case { sequence_major, mask, scale_query, axis: -1 };
                    assert_eq!(
                        attention(&case),
                        ["FusedAttention"],
                        "{mask:?} {scale_query} {sequence_major}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_softmax_along_another_axis_is_no_attention() {
        let case = Case { sequence_major: false, mask: None, scale_query: false, axis: 2 };
        assert!(!attention(&case).contains(&"FusedAttention"));
    }
}
