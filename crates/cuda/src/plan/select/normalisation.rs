//! Normalisation by mean and variance, or by the root mean square.

use weft_device::DeviceError;
use weft_ir::axis::normalise_axis;
use weft_ir::operators::normalisation::{
    InstanceNormalization, LayerNormalization, RmsNormalization,
};

use super::super::site::{Selected, Selection, Site};
use crate::Storage;
use crate::kernels::normalise::{Normalisation, Parameters};
use crate::kernels::normalise_columns::ChannelNormalisation;
use crate::launch::Argument;

pub(super) fn select(site: &Site<'_>) -> Selection {
    let Some(shape) = site.float_input(0) else { return Ok(None) };
    if site.float_output().as_ref() != Some(&shape) {
        return Ok(None);
    }
    match layer(site).or_else(|| rms(site)).or_else(|| images(site)) {
        Some(request) if shape.contains(&0) => {
            Ok(Some(Selected::single(request.name, vec![], vec![0])))
        }
        Some(request) => rows(site, &request),
        None => channels(site, &shape),
    }
}

/// What a normalisation of rows asks for, before it is known where scale and bias lie.
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

fn rows(site: &Site<'_>, request: &Request) -> Selection {
    let has_bias = site.has_input(2) && !request.is_rms;
    let Some(affine) = affine(site, &request.parameter_shape, has_bias)? else { return Ok(None) };
    let normalisation = Normalisation {
        storage: site.precision.storage(),
        rows: request.rows,
        columns: request.columns,
        epsilon: request.epsilon,
        is_rms: request.is_rms,
        parameters: request.parameters,
        parameter_storage: affine.storage,
        scale: affine.scale,
        bias: affine.bias,
    };
    let (from, to) = (Argument::Input(0), Argument::Output(0));
    let candidates = normalisation.candidates(request.name, site.chip, from, to);
    Ok(Selected::among(normalisation.to_string(), candidates, affine.reads))
}

/// Each channel of channels-last images.
fn channels(site: &Site<'_>, shape: &[usize]) -> Selection {
    let Some(operator) = site.operator::<InstanceNormalization>() else { return Ok(None) };
    let [images, positions @ .., channels] = shape else { return Ok(None) };
    if operator.channel_axis + 1 != shape.len() || shape.contains(&0) {
        return Ok(None);
    }
    let Some(affine) = affine(site, &[*channels], true)? else { return Ok(None) };
    let normalisation = ChannelNormalisation {
        storage: site.precision.storage(),
        images: *images,
        positions: positions.iter().product(),
        channels: *channels,
        epsilon: operator.epsilon,
        parameter_storage: affine.storage,
    };
    let bias = affine.bias.unwrap_or(Argument::Null);
    let launch = normalisation.launch(affine.scale, bias, Argument::Input(0), Argument::Output(0));
    Ok(Some(Selected::single("instance_norm columns", vec![launch], affine.reads)))
}

/// Scale and bias, in one storage type.
struct Affine {
    scale: Argument,
    bias: Option<Argument>,
    storage: Storage,
    /// The node's inputs that are read, the first included.
    reads: Vec<usize>,
}

/// Scale and bias of a shape, leading ones aside; `None` where they have another. Constants keep their full precision.
fn affine(site: &Site<'_>, shape: &[usize], has_bias: bool) -> Result<Option<Affine>, DeviceError> {
    let indices = if has_bias { &[1, 2][..] } else { &[1] };
    let fits = |&index: &usize| {
        let Some(own) = site.float_input(index) else { return false };
        let ones = own.len().saturating_sub(shape.len());
        own[..ones].iter().all(|&size| size == 1) && own[ones..] == *shape
    };
    if !indices.iter().all(fits) {
        return Ok(None);
    }
    let constants: Option<Vec<_>> = indices.iter().map(|&index| site.f32_constant(index)).collect();
    let (mut arguments, mut reads) = (Vec::new(), vec![0]);
    let storage = match constants {
        Some(tensors) => {
            for tensor in tensors {
                let bytes = |elements: &[f32]| bytemuck::cast_slice(elements).to_vec();
                let weights = site.weights.get_or_make(tensor, "f32".into(), bytes)?;
                arguments.push(Argument::Weights(weights));
            }
            Storage::F32
        }
        None => {
            reads.extend(indices);
            arguments.extend(indices.iter().map(|&index| Argument::Input(index)));
            site.precision.storage()
        }
    };
    let mut arguments = arguments.into_iter();
    let Some(scale) = arguments.next() else { return Ok(None) };
    Ok(Some(Affine { scale, bias: arguments.next(), storage, reads }))
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

    fn names(operator: &str, operands: Vec<Operand>) -> Option<Vec<String>> {
        let node = OneNode::new(operator, operands, Attributes::new());
        let selected = select(&node.site(Precision::F16)).unwrap()?;
        Some(selected.candidates.into_iter().map(|candidate| candidate.name).collect())
    }

    fn weights(len: usize) -> Operand {
        Operand::Constant(Tensor::vector(vec![1f32; len]))
    }

    #[test]
    fn parameters_are_as_long_as_what_is_normalised() {
        let layer =
            |parameter: Operand| names("LayerNormalization", vec![given(&[4, 768]), parameter]);
        assert_eq!(layer(weights(768)).unwrap(), ["layer_norm warp", "layer_norm block"]);
        assert_eq!(layer(given(&[1, 768])).unwrap().len(), 2);
        assert_eq!(layer(weights(1)), None);
        let instance = vec![given(&[2, 6, 5]), weights(6), weights(6)];
        assert_eq!(names("InstanceNormalization", instance).unwrap(), ["instance_norm warp"]);
    }

    #[test]
    fn computed_parameters_are_read_as_they_are_stored() {
        let operands = vec![given(&[4, 16]), weights(16), given(&[16])];
        let node = OneNode::new("LayerNormalization", operands, Attributes::new());
        let selected = select(&node.site(Precision::F16)).unwrap().unwrap();
        assert_eq!(selected.reads, [0, 1, 2]);
        let source = &selected.candidates[0].launches[0].source;
        assert!(source.defines.contains(&("PARAMETER", "__half".into())));
        assert!(source.defines.contains(&("ARE_WEIGHTS", "0".into())));
    }
}
