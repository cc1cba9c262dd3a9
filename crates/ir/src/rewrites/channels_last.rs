//! Convolutions read and write channels-last images, and the transposes this takes move on until they meet and vanish.

use std::sync::Arc;

use super::patch::NewNodes;
use super::{Patch, Rewrite, View};
use crate::data_type::DataType;
use crate::graph::{Node, ValueId};
use crate::operator::Operator;
use crate::operators::convolution::Conv;
use crate::operators::elementwise::{Binary, PRelu, Variadic, Where};
use crate::operators::fused::FusedConv;
use crate::operators::layout::{Concat, Transpose, transpose};
use crate::tensor::Tensor;

pub(crate) const CHANNELS_LAST: Rewrite = Rewrite { name: "channels-last", rule: seed };
pub(crate) const SINK_TRANSPOSE: Rewrite = Rewrite { name: "sink-transpose", rule: sink };

/// From `[N, C, H, W]` to `[N, H, W, C]`.
const TO_CHANNELS_LAST: [usize; 4] = [0, 2, 3, 1];

/// Every 2-D convolution of `f32` in the standard's order.
fn seed(view: &View<'_>, root: usize) -> Option<Patch> {
    let node = view.node(root);
    let conv = node.is::<Conv>().or_else(|| node.is::<FusedConv>().map(|fused| &fused.conv))?;
    let input = view.fact(node.input(0)?);
    let is_image =
        input.rank() == Some(4) && input.data_type == Some(DataType::F32) && input.is_static();
    (is_image && !conv.channels_last).then(|| turn(view, root, &TO_CHANNELS_LAST))?
}

/// A node whose input was just transposed is given the input as it was before, and its output transposed instead.
fn sink(view: &View<'_>, root: usize) -> Option<Patch> {
    let node = view.node(root);
    if node.is::<Transpose>().is_some() {
        return None;
    }
    let permutation = node.inputs.iter().flatten().find_map(|&id| transposed_from(view, id))?.1;
    // Rank 4 alone: transposes of attention heads are dealt with by the attention rewrite.
    (permutation == inverse(&TO_CHANNELS_LAST)).then(|| turn(view, root, &TO_CHANNELS_LAST))?
}

/// The value and the permutation, where a value is a transpose.
fn transposed_from(view: &View<'_>, id: ValueId) -> Option<(ValueId, Vec<usize>)> {
    let (node, transpose) = view.produced_by::<Transpose>(id)?;
    let source = node.input(0)?;
    Some((source, transpose.permutation_for(view.rank(source)?).ok()?))
}

pub(super) fn inverse(permutation: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; permutation.len()];
    permutation.iter().enumerate().for_each(|(new, &old)| inverse[old] = new);
    inverse
}

/// The node on permuted inputs, followed by transposes back.
fn turn(view: &View<'_>, root: usize, permutation: &[usize]) -> Option<Patch> {
    let node = view.node(root);
    let operator = node.operator.permuted(permutation)?;
    let back = inverse(permutation);
    let rank = permutation.len();
    let outputs_fit = node.outputs.iter().flatten().all(|&id| view.rank(id) == Some(rank));
    if !outputs_fit {
        return None;
    }
    if !parameters_are_constant(view, node) {
        return None;
    }
    let mut nodes = NewNodes::new(view, root);
    let mut inputs = Vec::with_capacity(node.inputs.len());
    for input in &node.inputs {
        inputs.push(match *input {
            None => None,
            Some(id) => Some(turn_input(view, node, id, permutation, &back, &mut nodes)?),
        });
    }
    let turned: Vec<Option<ValueId>> =
        node.outputs.iter().map(|id| id.map(|_| nodes.value())).collect();
    nodes.last(operator, inputs, turned.clone());
    for (turned, output) in turned.into_iter().zip(&node.outputs) {
        if output.is_some() {
            nodes.last(transpose_by(&back), vec![turned], vec![*output]);
        }
    }
    nodes.done()
}

fn transpose_by(permutation: &[usize]) -> Arc<dyn Operator> {
    Arc::new(Transpose { permutation: Some(permutation.to_vec()) })
}

fn turn_input(
    view: &View<'_>,
    node: &Node,
    id: ValueId,
    permutation: &[usize],
    back: &[usize],
    nodes: &mut NewNodes,
) -> Option<ValueId> {
    if let Some(constant) = view.constant(id) {
        if !spreads_constants(node) || constant.len() == 1 && constant.rank() <= 1 {
            return Some(id);
        }
        return Some(nodes.constant(turn_constant(constant, permutation)?));
    }
    match transposed_from(view, id) {
        Some((source, given)) if given == back => Some(source),
        _ if view.rank(id) == Some(permutation.len()) => {
            Some(nodes.node(transpose_by(permutation), vec![Some(id)]))
        }
        _ => None,
    }
}

/// True where every input that is no image is a constant: weights that are computed would be taken for images.
fn parameters_are_constant(view: &View<'_>, node: &Node) -> bool {
    let is_image = |index: usize| index == 0 || index == 3 && node.is::<FusedConv>().is_some();
    let mut parameters = node.inputs.iter().enumerate().filter(|(index, _)| !is_image(*index));
    spreads_constants(node)
        || parameters.all(|(_, id)| id.is_none_or(|id| view.constant(id).is_some()))
}

/// True for operators that spread a constant over the axes of their other inputs.
fn spreads_constants(node: &Node) -> bool {
    node.is::<Binary>().is_some()
        || node.is::<Variadic>().is_some()
        || node.is::<Where>().is_some()
        || node.is::<PRelu>().is_some()
        || node.is::<Concat>().is_some()
}

fn turn_constant(constant: &Tensor, permutation: &[usize]) -> Option<Tensor> {
    let missing = permutation.len().checked_sub(constant.rank())?;
    let mut shape = vec![1; missing];
    shape.extend_from_slice(constant.shape());
    transpose(&constant.reshaped(shape).ok()?, permutation).ok()
}

#[cfg(test)]
mod tests {
    use super::super::drop_identity::DROP_IDENTITY;
    use super::super::testing::{check_stages, finish, node, weights};
    use super::super::transposes::{MERGE_TRANSPOSES, SHARE_TRANSPOSES, TRANSPOSE_AS_RESHAPE};
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::GraphBuilder;

    fn layout(graph: &crate::Graph) -> Vec<&'static str> {
        check_stages(
            graph,
            &[&[
                CHANNELS_LAST,
                SINK_TRANSPOSE,
                MERGE_TRANSPOSES,
                SHARE_TRANSPOSES,
                TRANSPOSE_AS_RESHAPE,
                DROP_IDENTITY,
            ]],
        )
    }

    #[test]
    fn a_chain_of_convolutions_is_transposed_once_at_each_end() {
        let mut b = GraphBuilder::new("chain", 17);
        let x = b.input("x", DataType::F32, &[2, 3, 6, 5]);
        let [first, second] = [[4, 3, 3, 3], [5, 4, 1, 1]].map(|shape| weights(&mut b, &shape));
        let conv = node(&mut b, "Conv", &[x, first]);
        let relu = node(&mut b, "Relu", &[conv]);
        let slope = weights(&mut b, &[4, 1, 1]);
        let scaled = node(&mut b, "Mul", &[relu, slope]);
        let last = node(&mut b, "Conv", &[scaled, second]);
        let graph = finish(b, last);
        assert_eq!(layout(&graph), ["Transpose", "Conv", "Relu", "Mul", "Conv", "Transpose"]);
    }

    #[test]
    fn weights_that_are_computed_are_no_images() {
        let mut b = GraphBuilder::new("dynamic", 17);
        let x = b.input("x", DataType::F32, &[1, 3, 6, 5]);
        let w = b.input("w", DataType::F32, &[4, 3, 3, 3]);
        let conv = node(&mut b, "Conv", &[x, w]);
        let graph = finish(b, conv);
        assert_eq!(layout(&graph), ["Conv"]);
    }

    #[test]
    fn branches_join_channels_last() {
        let mut b = GraphBuilder::new("branches", 17);
        let x = b.input("x", DataType::F32, &[2, 3, 6, 5]);
        let [left, right] = [0; 2].map(|_| weights(&mut b, &[4, 3, 1, 1]));
        let left = node(&mut b, "Conv", &[x, left]);
        let right = node(&mut b, "Conv", &[x, right]);
        let both = b.node("Concat", &[left, right], Attributes::new().with("axis", 1i64));
        let pooled = node(&mut b, "GlobalAveragePool", &[both]);
        let flat = node(&mut b, "Flatten", &[pooled]);
        let graph = finish(b, flat);
        let operators = layout(&graph);
        let transposes = operators.iter().filter(|name| **name == "Transpose").count();
        assert_eq!(transposes, 1, "{operators:?}");
    }
}
