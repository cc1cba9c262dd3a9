//! Products that others fold into: convolutions and matrix products, plain or fused already.

use super::View;
use crate::activation::Activation;
use crate::data_type::DataType;
use crate::graph::{Node, ValueId};
use crate::operators::convolution::Conv;
use crate::operators::elementwise::BoundInput;
use crate::operators::fused::{Epilogue, FusedConv};

/// A convolution as a pattern sees it.
pub(super) struct ConvParts<'a> {
    pub(super) node: &'a Node,
    pub(super) conv: &'a Conv,
    pub(super) epilogue: Epilogue,
}

/// The convolution of `f32` that produces a value nobody else reads.
pub(super) fn sole_conv<'a>(view: &View<'a>, id: ValueId) -> Option<ConvParts<'a>> {
    let (_, node) = view.producer(id)?;
    let (conv, epilogue) = match (node.is::<Conv>(), node.is::<FusedConv>()) {
        (Some(conv), _) => (conv, Epilogue::default()),
        (_, Some(fused)) => (&fused.conv, fused.epilogue),
        _ => return None,
    };
    let is_f32 = view.fact(id).data_type == Some(DataType::F32);
    (view.has_one_use(id) && is_f32).then_some(ConvParts { node, conv, epilogue })
}

/// The activation that a node is.
pub(super) fn activation_of(view: &View<'_>, node: &Node) -> Option<Activation> {
    Activation::of(&*node.operator, |index| match node.input(index) {
        None => BoundInput::Absent,
        Some(id) => view.constant(id).map_or(BoundInput::Computed, BoundInput::Constant),
    })
}

/// A node's inputs with the one at `index` set.
pub(super) fn with_input(node: &Node, index: usize, id: ValueId) -> Vec<Option<ValueId>> {
    let mut inputs = node.inputs.clone();
    inputs.resize(inputs.len().max(index + 1), None);
    inputs[index] = Some(id);
    inputs
}
