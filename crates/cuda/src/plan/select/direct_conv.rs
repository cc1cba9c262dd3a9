//! Convolutions that no faster kernel computes, and transposed ones.

use weft_device::DeviceError;
use weft_ir::operators::convolution::{AxisWindow, Conv, ConvTranspose};
use weft_ir::operators::fused::Epilogue;

use super::conv::convolution;
use super::epilogue::bias_weights;
use crate::Storage;
use crate::kernels::direct_conv::{DirectConv, DirectOperands, WeightOrder, by_tap};
use crate::kernels::stored::stored;
use crate::launch::Argument;
use crate::plan::site::{Selected, Selection, Site};

pub(super) fn select(site: &Site<'_>) -> Selection {
    let (problem, epilogue) = match (convolution(site), site.operator::<ConvTranspose>()) {
        (Some((conv, epilogue)), _) => (plain(site, conv, &epilogue), epilogue),
        (_, Some(conv)) => (transposed(site, conv), Epilogue::default()),
        _ => return Ok(None),
    };
    let Some(problem) = problem.filter(|problem| fits(site, problem, &epilogue)) else {
        return Ok(None);
    };
    let mut reads = vec![0];
    let weights = weights(site, &problem, &mut reads)?;
    let bias = match bias_weights(site)? {
        Some(bias) => Argument::Weights(bias),
        None if site.has_input(2) => {
            reads.push(2);
            Argument::Input(2)
        }
        None => Argument::Null,
    };
    let residual = match epilogue.has_residual {
        true => {
            reads.push(3);
            Argument::Input(3)
        }
        false => Argument::Null,
    };
    let (input, output) = (Argument::Input(0), Argument::Output(0));
    let launch = problem.launch(DirectOperands { input, weights, bias, residual, output });
    Ok(Some(Selected::single("direct_conv", launch.into_iter().collect(), reads)))
}

/// The images, channels and spatial sizes of a shape.
fn image(shape: &[usize], channels_last: bool) -> Option<(usize, usize, &[usize])> {
    match *shape {
        [images, ref spatial @ .., channels] if channels_last => Some((images, channels, spatial)),
        [images, channels, ref spatial @ ..] => Some((images, channels, spatial)),
        _ => None,
    }
}

fn weight_order(site: &Site<'_>) -> WeightOrder {
    match site.f32_constant(1) {
        Some(_) => WeightOrder::ByTap,
        None => WeightOrder::AsGiven,
    }
}

/// How the bias is stored; `None` where there is none.
fn bias_storage(site: &Site<'_>) -> Option<Storage> {
    site.has_input(2).then(|| match site.f32_constant(2) {
        Some(_) => Storage::F32,
        None => site.precision.storage(),
    })
}

fn plain(site: &Site<'_>, conv: &Conv, epilogue: &Epilogue) -> Option<DirectConv> {
    let (input, weights) = (site.float_input(0)?, site.float_input(1)?);
    let windows = conv.axes(&input, &weights).ok()?;
    let (images, channels, _) = image(&input, conv.channels_last)?;
    let &[filters, per_group, ..] = &weights[..] else { return None };
    let groups = conv.group;
    let is_whole = per_group.checked_mul(groups) == Some(channels) && filters % groups == 0;
    is_whole.then(|| DirectConv {
        storage: site.precision.storage(),
        images,
        windows,
        is_transposed: false,
        channels_last: conv.channels_last,
        groups,
        channels: per_group,
        filters: filters / groups,
        weight_order: weight_order(site),
        bias: bias_storage(site),
        has_residual: epilogue.has_residual,
        activation: epilogue.activation,
    })
}

fn transposed(site: &Site<'_>, conv: &ConvTranspose) -> Option<DirectConv> {
    let (input, weights) = (site.float_input(0)?, site.float_input(1)?);
    let (images, channels, spatial) = image(&input, conv.channels_last)?;
    let [of_weights, filters, kernel @ ..] = &weights[..] else { return None };
    let groups = conv.group;
    if *of_weights != channels || channels % groups != 0 || kernel.len() != spatial.len() {
        return None;
    }
    let axis = |axis: usize| conv.axis(axis, spatial.len(), spatial[axis], kernel[axis]).ok();
    Some(DirectConv {
        storage: site.precision.storage(),
        images,
        windows: (0..spatial.len()).map(axis).collect::<Option<_>>()?,
        is_transposed: true,
        channels_last: conv.channels_last,
        groups,
        channels: channels / groups,
        filters: *filters,
        weight_order: weight_order(site),
        bias: bias_storage(site),
        has_residual: false,
        activation: None,
    })
}

/// True where there is a kernel, and every operand has the shape that it reads.
fn fits(site: &Site<'_>, problem: &DirectConv, epilogue: &Epilogue) -> bool {
    let filters = problem.groups * problem.filters;
    let size =
        |window: &AxisWindow| if problem.is_transposed { window.input } else { window.output };
    let spatial = problem.windows.iter().map(size);
    let expected: Vec<usize> = match problem.channels_last {
        true => [problem.images].into_iter().chain(spatial).chain([filters]).collect(),
        false => [problem.images, filters].into_iter().chain(spatial).collect(),
    };
    let output = site.float_output();
    problem.supports()
        && output.as_ref() == Some(&expected)
        && (!site.has_input(2) || site.float_input(2) == Some(vec![filters]))
        && (!epilogue.has_residual || site.float_input(3) == output)
}

/// The weights: constants are brought into the order that the kernel reads fastest.
fn weights(
    site: &Site<'_>,
    problem: &DirectConv,
    reads: &mut Vec<usize>,
) -> Result<Argument, DeviceError> {
    let Some(tensor) = site.f32_constant(1) else {
        reads.push(1);
        return Ok(Argument::Input(1));
    };
    let storage = problem.storage;
    let kind = if problem.is_transposed { "transposed" } else { "plain" };
    let form = format!("{kind} filters by tap {:?} {} {storage:?}", tensor.shape(), problem.groups);
    let make = |elements: &[f32]| stored(by_tap(problem, elements), storage);
    Ok(Argument::Weights(site.weights.get_or_make(tensor, form, make)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;
    use crate::plan::select::testing::{OneNode, Operand, given};
    use weft_ir::{Attributes, Tensor};

    fn constant(shape: &[usize]) -> Operand {
        let count = shape.iter().product();
        Operand::Constant(Tensor::from_vec(shape.to_vec(), vec![1f32; count]).unwrap())
    }

    fn reads(operator: &str, operands: Vec<Operand>, attributes: Attributes) -> Option<Vec<usize>> {
        let node = OneNode::new(operator, operands, attributes);
        Some(select(&node.site(Precision::F16)).unwrap()?.reads)
    }

    #[test]
    fn any_rank_and_any_groups_have_a_kernel() {
        let groups = |count: i64| Attributes::new().with("group", count);
        let line = vec![given(&[1, 4, 9]), constant(&[6, 2, 3]), constant(&[6])];
        assert_eq!(reads("Conv", line, groups(2)), Some(vec![0]));
        let volume = vec![given(&[1, 2, 5, 5, 5]), constant(&[3, 2, 3, 3, 3])];
        assert_eq!(reads("Conv", volume, groups(1)), Some(vec![0]));
        let computed = vec![given(&[1, 4, 9, 9]), given(&[4, 2, 3, 3]), given(&[6])];
        assert_eq!(reads("ConvTranspose", computed, groups(2)), None);
        let computed = vec![given(&[1, 4, 9, 9]), given(&[4, 3, 3, 3]), given(&[6])];
        assert_eq!(reads("ConvTranspose", computed, groups(2)), Some(vec![0, 1, 2]));
    }
}
