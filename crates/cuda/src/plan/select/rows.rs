//! Operators along lines: softmax, normalisation, and where the extremes stand.

use weft_device::DeviceError;
use weft_ir::axis::{around_axis, normalise_axis};
use weft_ir::operators::normalisation::{
    InstanceNormalization, LayerNormalization, RmsNormalization,
};
use weft_ir::operators::reduction::{ArgReduce, LogSoftmax, Softmax};

use super::super::site::{Selected, Selection, Site};
use crate::Storage;
use crate::kernels::extreme::Extreme;
use crate::kernels::normalise::{Normalisation, Parameters};
use crate::kernels::softmax;
use crate::launch::Argument;

pub(super) fn select(site: &Site<'_>) -> Selection {
    if let Some(selected) = softmax(site).or_else(|| extreme(site)) {
        return Ok(Some(selected));
    }
    normalise(site)
}

fn softmax(site: &Site<'_>) -> Option<Selected> {
    let (softmax, is_logarithm) = match (site.operator::<Softmax>(), site.operator::<LogSoftmax>())
    {
        (Some(softmax), _) => (*softmax, false),
        (_, Some(logarithm)) => (logarithm.softmax, true),
        _ => return None,
    };
    let shape = site.float_input(0)?;
    let axis = normalise_axis(softmax.axis, shape.len()).ok()?;
    if site.float_output()? != shape {
        return None;
    }
    if shape.contains(&0) {
        return Some(Selected::single("softmax", vec![], vec![0]));
    }
    let (outer, along, inner) = match (softmax.flattens, around_axis(&shape, axis)) {
        (true, (outer, along, inner)) => (outer, along * inner, 1),
        (false, sizes) => sizes,
    };
    let storage = site.precision.storage();
    let lines = softmax::Softmax { storage, is_logarithm, outer, along, inner };
    let candidates = lines.candidates(site.chip, Argument::Input(0), Argument::Output(0));
    Some(Selected { candidates, reads: vec![0] })
}

fn extreme(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<ArgReduce>()?;
    let (shape, storage) = site.resident(site.input_fact(0)?)?;
    let axis = normalise_axis(operator.axis, shape.len()).ok()?;
    if shape[axis] == 0 {
        return None;
    }
    if shape.contains(&0) {
        return Some(Selected::single("extreme", vec![], vec![0]));
    }
    let (outer, along, inner) = around_axis(&shape, axis);
    let (is_largest, is_last) = (operator.largest, operator.select_last_index);
    let extreme = Extreme { storage, is_largest, is_last, outer, along, inner };
    extreme.supports().then(|| {
        let launch = extreme.launch(Argument::Input(0), Argument::Output(0));
        Selected::single("extreme", vec![launch], vec![0])
    })
}

/// What a normalisation asks for, before it is known where scale and bias lie.
struct Request {
    name: &'static str,
    rows: usize,
    columns: usize,
    epsilon: f32,
    is_rms: bool,
    parameters: Parameters,
    /// The shape of scale and bias, leading ones aside.
    parameter_shape: Vec<usize>,
}

fn normalise(site: &Site<'_>) -> Selection {
    let Some(request) = layer(site).or_else(|| rms(site)).or_else(|| images(site)) else {
        return Ok(None);
    };
    let Some(output) = site.float_output() else { return Ok(None) };
    if site.float_input(0) != Some(output.clone()) {
        return Ok(None);
    }
    if output.contains(&0) {
        return Ok(Some(Selected::single(request.name, vec![], vec![0])));
    }
    let mut reads = vec![0];
    let has_bias = site.has_input(2) && !request.is_rms;
    let are_constant =
        [1, 2][..1 + usize::from(has_bias)].iter().all(|&index| site.f32_constant(index).is_some());
    let Some(scale) = parameter(site, &request, 1, are_constant, &mut reads)? else {
        return Ok(None);
    };
    let bias = match has_bias {
        false => None,
        true => match parameter(site, &request, 2, are_constant, &mut reads)? {
            None => return Ok(None),
            bias => bias,
        },
    };
    let storage = site.precision.storage();
    let normalisation = Normalisation {
        storage,
        rows: request.rows,
        columns: request.columns,
        epsilon: request.epsilon,
        is_rms: request.is_rms,
        parameters: request.parameters,
        parameter_storage: if are_constant { Storage::F32 } else { storage },
        scale,
        bias,
    };
    let (from, to) = (Argument::Input(0), Argument::Output(0));
    let candidates = normalisation.candidates(request.name, site.chip, from, to);
    Ok(Some(Selected { candidates, reads }))
}

/// A scale or bias: a constant keeps its full precision.
fn parameter(
    site: &Site<'_>,
    request: &Request,
    index: usize,
    are_constant: bool,
    reads: &mut Vec<usize>,
) -> Result<Option<Argument>, DeviceError> {
    let shape = site.float_input(index);
    let inner = |shape: &Vec<usize>| {
        let ones = shape.len().saturating_sub(request.parameter_shape.len());
        shape[..ones].iter().all(|&size| size == 1) && shape[ones..] == request.parameter_shape
    };
    if !shape.as_ref().is_some_and(inner) {
        return Ok(None);
    }
    if let Some(tensor) = site.f32_constant(index).filter(|_| are_constant) {
        let bytes = |elements: &[f32]| bytemuck::cast_slice(elements).to_vec();
        return Ok(Some(Argument::Weights(site.weights.get_or_make(
            tensor,
            "f32".into(),
            bytes,
        )?)));
    }
    reads.push(index);
    Ok(Some(Argument::Input(index)))
}

/// Rows of the trailing axes.
fn trailing(site: &Site<'_>, axis: i64) -> Option<(usize, Vec<usize>)> {
    let shape = site.float_input(0)?;
    let axis = normalise_axis(axis, shape.len()).ok()?;
    Some((shape[..axis].iter().product(), shape[axis..].to_vec()))
}

fn layer(site: &Site<'_>) -> Option<Request> {
    let operator = site.operator::<LayerNormalization>()?;
    let (rows, parameter_shape) = trailing(site, operator.axis)?;
    Some(Request {
        name: "layer_norm",
        rows,
        columns: parameter_shape.iter().product(),
        epsilon: operator.epsilon,
        is_rms: false,
        parameters: Parameters::PerColumn,
        parameter_shape,
    })
}

fn rms(site: &Site<'_>) -> Option<Request> {
    let operator = site.operator::<RmsNormalization>()?;
    let (rows, parameter_shape) = trailing(site, operator.axis)?;
    Some(Request {
        name: "rms_norm",
        rows,
        columns: parameter_shape.iter().product(),
        epsilon: operator.epsilon,
        is_rms: true,
        parameters: Parameters::PerColumn,
        parameter_shape,
    })
}

/// Channels, or groups of them, of channels-first images.
fn images(site: &Site<'_>) -> Option<Request> {
    let shape = site.float_input(0)?;
    let &[images, channels, ..] = &shape[..] else { return None };
    let positions: usize = shape[2..].iter().product();
    let (name, groups, epsilon, parameter_count) = match site.operator::<InstanceNormalization>() {
        Some(operator) if operator.channel_axis == 1 => {
            ("instance_norm", channels, operator.epsilon, channels)
        }
        Some(_) => return None,
        None => group_attributes(site, channels)?,
    };
    let is_whole = groups > 0 && channels % groups == 0;
    let columns = channels.checked_div(groups).filter(|_| is_whole)? * positions;
    let per_group = parameter_count / groups;
    Some(Request {
        name,
        rows: images * groups,
        columns,
        epsilon,
        is_rms: false,
        parameters: Parameters::PerChannel { groups, channels: per_group },
        parameter_shape: vec![parameter_count],
    })
}

/// The kernel's name, groups, epsilon and number of parameters of a GroupNormalization.
fn group_attributes(site: &Site<'_>, channels: usize) -> Option<(&'static str, usize, f32, usize)> {
    let origin = site.node.origin.as_ref()?;
    if site.node.operator.name() != "GroupNormalization" {
        return None;
    }
    let groups = usize::try_from(origin.attributes.int_or("num_groups", 0).ok()?).ok()?;
    let epsilon = origin.attributes.float_or("epsilon", 1e-5).ok()?;
    // Scale and bias are per group up to opset 20, and per channel after it.
    let is_per_group = site.graph.graph().opset < 21;
    Some(("group_norm", groups, epsilon, if is_per_group { groups } else { channels }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;
    use crate::plan::select::testing::{OneNode, Operand, given};
    use weft_ir::{Attributes, Tensor};

    fn names(
        operator: &str,
        operands: Vec<Operand>,
        attributes: Attributes,
    ) -> Option<Vec<String>> {
        let node = OneNode::new(operator, operands, attributes);
        let selected = select(&node.site(Precision::F16)).unwrap()?;
        Some(selected.candidates.into_iter().map(|candidate| candidate.name).collect())
    }

    fn weights(len: usize) -> Operand {
        Operand::Constant(Tensor::vector(vec![1f32; len]))
    }

    #[test]
    fn short_rows_go_to_warps_and_long_ones_to_blocks() {
        let softmax = |shape: &[usize], axis: i64| {
            names("Softmax", vec![given(shape)], Attributes::new().with("axis", axis)).unwrap()
        };
        assert_eq!(softmax(&[12, 128], -1), ["softmax warp"]);
        assert_eq!(softmax(&[12, 1024], -1), ["softmax warp", "softmax block"]);
        assert_eq!(softmax(&[2, 50_257], -1), ["softmax block"]);
        assert_eq!(softmax(&[2, 5, 7], 1), ["softmax strided"]);
    }

    #[test]
    fn parameters_are_as_long_as_what_is_normalised() {
        let layer = |parameter: Operand| {
            names("LayerNormalization", vec![given(&[4, 768]), parameter], Attributes::new())
        };
        assert_eq!(layer(weights(768)).unwrap(), ["layer_norm warp", "layer_norm block"]);
        assert_eq!(layer(given(&[1, 768])).unwrap().len(), 2);
        assert_eq!(layer(weights(1)), None);
        let instance = vec![given(&[2, 6, 5]), weights(6), weights(6)];
        assert_eq!(
            names("InstanceNormalization", instance, Attributes::new()).unwrap(),
            ["instance_norm warp"]
        );
    }
}
