//! A batch normalisation, or a product or sum with one constant per channel, folds into the convolution before it.

use std::sync::Arc;

use super::patch::NewNodes;
use super::producers::sole_conv;
use super::{Patch, Rewrite, View};
use crate::graph::ValueId;
use crate::operator::Operator;
use crate::operators::elementwise::{Binary, BinaryFunction};
use crate::operators::normalisation::BatchNormalization;
use crate::tensor::Tensor;

pub(crate) const FOLD_BATCH_NORM: Rewrite =
    Rewrite { name: "fold-batch-norm", rule: fold_batch_norm };
pub(crate) const FOLD_CHANNEL_ARITHMETIC: Rewrite =
    Rewrite { name: "fold-channel-arithmetic", rule: fold_arithmetic };

/// What is done to each channel: `x * scale + shift`.
pub(super) struct ChannelMap {
    pub(super) scale: Vec<f32>,
    pub(super) shift: Vec<f32>,
}

/// The map that a batch normalisation in inference is.
pub(super) fn map_of_batch_norm(
    view: &View<'_>,
    root: usize,
) -> Option<(ValueId, ChannelMap, usize)> {
    let node = view.node(root);
    let norm = node.is::<BatchNormalization>()?;
    if norm.training || node.outputs.iter().skip(1).any(Option::is_some) {
        return None;
    }
    let parameter = |index: usize| view.constant(node.input(index)?)?.elements::<f32>().ok();
    let (gamma, beta, mean, variance) =
        (parameter(1)?, parameter(2)?, parameter(3)?, parameter(4)?);
    if [beta.len(), mean.len(), variance.len()] != [gamma.len(); 3] {
        return None;
    }
    let scale: Vec<f32> = gamma
        .iter()
        .zip(variance)
        .map(|(gamma, var)| gamma / (var + norm.epsilon).sqrt())
        .collect();
    let shift = beta
        .iter()
        .zip(mean)
        .zip(&scale)
        .map(|((beta, mean), scale)| beta - mean * scale)
        .collect();
    Some((node.input(0)?, ChannelMap { scale, shift }, norm.channel_axis))
}

fn fold_batch_norm(view: &View<'_>, root: usize) -> Option<Patch> {
    let (input, map, channel_axis) = map_of_batch_norm(view, root)?;
    if channel_axis != 1 { None } else { fold_into_conv(view, root, input, map) }
}

fn fold_arithmetic(view: &View<'_>, root: usize) -> Option<Patch> {
    let node = view.node(root);
    let function = node.is::<Binary>()?.function;
    let (left, right) = (node.input(0)?, node.input(1)?);
    let (input, constant) = match (view.constant(left), view.constant(right)) {
        (None, Some(constant)) => (left, constant),
        (Some(constant), None) if matches!(function, BinaryFunction::Add | BinaryFunction::Mul) => {
            (right, constant)
        }
        _ => return None,
    };
    let dimensions = view.fact(input).dimensions.as_ref()?;
    let channels = dimensions.get(1).copied().flatten()?;
    let values = per_channel(constant, channels, dimensions.len())?;
    let map = match function {
        BinaryFunction::Add => ChannelMap { scale: vec![1.0; channels], shift: values },
        BinaryFunction::Sub => ChannelMap {
            scale: vec![1.0; channels],
            shift: values.iter().map(|value| -value).collect(),
        },
        BinaryFunction::Mul => ChannelMap { scale: values, shift: vec![0.0; channels] },
        BinaryFunction::Div => ChannelMap {
            scale: values.iter().map(|value| 1.0 / value).collect(),
            shift: vec![0.0; channels],
        },
        _ => return None,
    };
    fold_into_conv(view, root, input, map)
}

/// One value per channel, where a constant broadcasts along every axis of an image but its channels.
fn per_channel(constant: &Tensor, channels: usize, rank: usize) -> Option<Vec<f32>> {
    let elements = constant.elements::<f32>().ok()?;
    if constant.rank() > rank {
        return None;
    }
    if let [only] = elements {
        return Some(vec![*only; channels]);
    }
    let channel_axis = (constant.rank() + 1).checked_sub(rank)?;
    let is_per_channel =
        elements.len() == channels && constant.shape().get(channel_axis) == Some(&channels);
    is_per_channel.then(|| elements.to_vec())
}

fn fold_into_conv(view: &View<'_>, root: usize, input: ValueId, map: ChannelMap) -> Option<Patch> {
    let parts = sole_conv(view, input)?;
    if !parts.epilogue.is_empty() {
        return None;
    }
    let weights = view.constant(parts.node.input(1)?)?;
    let channels = *weights.shape().first()?;
    if channels != map.scale.len() || channels == 0 {
        return None;
    }
    let bias = match parts.node.input(2) {
        None => vec![0.0; channels],
        Some(id) => view.constant(id)?.elements::<f32>().ok()?.to_vec(),
    };
    let filter = (weights.len() / channels).max(1);
    let is_scaled = map.scale.iter().any(|&scale| scale != 1.0);
    let scaled = is_scaled.then(|| {
        let mut elements = weights.clone().into_elements::<f32>()?;
        for (channel, scale) in elements.chunks_exact_mut(filter).zip(&map.scale) {
            channel.iter_mut().for_each(|weight| *weight *= scale);
        }
        Tensor::from_vec(weights.shape().to_vec(), elements)
    });
    let terms = bias.iter().zip(&map.scale).zip(&map.shift);
    let new_bias: Vec<f32> = terms.map(|((bias, scale), shift)| bias * scale + shift).collect();
    let mut nodes = NewNodes::new(view, root);
    let new_weights = match scaled {
        Some(scaled) => nodes.constant(scaled.ok()?),
        None => parts.node.input(1)?,
    };
    let new_bias = nodes.constant(Tensor::vector(new_bias));
    let inputs = vec![parts.node.input(0), Some(new_weights), Some(new_bias)];
    let operator: Arc<dyn Operator> = Arc::new(parts.conv.clone());
    nodes.last(operator, inputs, view.node(root).outputs.clone());
    nodes.done()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, check_stages, finish, node, random_tensor, weights};
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::GraphBuilder;
    use crate::data_type::DataType;

    fn conv(builder: &mut GraphBuilder) -> ValueId {
        let x = builder.input("x", DataType::F32, &[2, 3, 5, 5]);
        let (w, b) = (weights(builder, &[4, 3, 3, 3]), weights(builder, &[4]));
        node(builder, "Conv", &[x, w, b])
    }

    fn batch_norm(builder: &mut GraphBuilder, x: ValueId) -> ValueId {
        let [gamma, beta, mean] = [0; 3].map(|_| weights(builder, &[4]));
        let variance = random_tensor(&[4], 9)
            .elements::<f32>()
            .unwrap()
            .iter()
            .map(|v| v.abs() + 0.5)
            .collect();
        let variance = builder.constant("variance", Tensor::vector::<f32>(variance));
        node(builder, "BatchNormalization", &[x, gamma, beta, mean, variance])
    }

    #[test]
    fn batch_norm_disappears_into_the_convolution() {
        let mut builder = GraphBuilder::new("conv-bn", 17);
        let conv = conv(&mut builder);
        let norm = batch_norm(&mut builder, conv);
        let graph = finish(builder, norm);
        assert_eq!(check(&graph, FOLD_BATCH_NORM), ["Conv"]);
    }

    #[test]
    fn a_convolution_that_others_read_is_left_alone() {
        let mut builder = GraphBuilder::new("shared", 17);
        let conv = conv(&mut builder);
        let norm = batch_norm(&mut builder, conv);
        let sum = node(&mut builder, "Add", &[norm, conv]);
        let graph = finish(builder, sum);
        assert_eq!(check(&graph, FOLD_BATCH_NORM), ["Conv", "BatchNormalization", "Add"]);
    }

    #[test]
    fn constants_per_channel_fold_and_others_do_not() {
        let cases: [(&str, &[usize], usize); 6] = [
            ("Add", &[4, 1, 1], 1),
            ("Mul", &[1, 4, 1, 1], 1),
            ("Sub", &[1], 1),
            ("Div", &[4, 1, 1], 1),
            ("Add", &[3], 2),
            ("Add", &[1, 1, 3, 1], 2),
        ];
        for (operator, shape, left) in cases {
            let mut builder = GraphBuilder::new("arithmetic", 17);
            let conv = conv(&mut builder);
            let constant = weights(&mut builder, shape);
            let result = builder.node(operator, &[conv, constant], Attributes::new());
            let graph = finish(builder, result);
            let operators = check_stages(&graph, &[&[FOLD_CHANNEL_ARITHMETIC]]);
            assert_eq!(operators.len(), left, "{operator} {shape:?}");
        }
    }
}
