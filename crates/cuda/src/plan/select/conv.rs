//! Dense two-dimensional convolutions with constant weights, as products on tensor cores.

use weft_ir::Tensor;
use weft_ir::operators::convolution::{AxisWindow, Conv};
use weft_ir::operators::fused::{Epilogue, FusedConv};

use super::epilogue::{bias_weights, right_stride};
use crate::Storage;
use crate::kernels::gemm::{GemmProblem, Image, Left, Operands, Right, candidates};
use crate::kernels::pad_rows::{pad_rows_launch, padded_columns};
use crate::kernels::stored::stored_rows;
use crate::launch::Argument;
use crate::plan::site::{Selected, Selection, Site};

/// A channels-last convolution with one group, fused or plain.
pub(super) fn select(site: &Site<'_>) -> Selection {
    let Some((conv, epilogue)) = convolution(site) else { return Ok(None) };
    let Some(shape) = windows(site, conv, &epilogue).filter(|_| conv.group == 1) else {
        return Ok(None);
    };
    let bias = bias_weights(site)?;
    let storage = site.precision.storage();
    let channels = shape.image.channels;
    let padded = padded_columns(channels, storage);
    let k = shape.image.kernel[0] * shape.image.kernel[1] * padded;
    let image = Image { channels: padded, ..shape.image };
    let is_pointwise = image.kernel == [1, 1]
        && image.strides == [1, 1]
        && image.pads_begin == [0, 0]
        && image.output == image.size;
    let problem = GemmProblem {
        m: shape.batch * image.output[0] * image.output[1],
        n: shape.filters,
        k,
        stack: 1,
        stack_steps: [0; 3],
        left: if is_pointwise { Left::Matrix { stride: padded } } else { Left::Image(image) },
        right: Right { by_rows: false, stride: right_stride(k, storage), is_weights: true },
        bias: bias.as_ref().map(|_| Storage::F32),
        has_residual: epilogue.has_residual,
        activation: epilogue.activation,
        precision: site.precision,
    };
    if !problem.is_supported() {
        return Ok(None);
    }
    let right = site.weights.get_or_make(
        shape.weights,
        format!("filters {:?} padded {padded} {storage:?}", shape.weights.shape()),
        |weights| filters_by_rows(weights, &shape, padded, problem.right.stride, storage),
    )?;
    let pixels = shape.batch * image.size[0] * image.size[1];
    let is_padded = padded != channels;
    let workspace_from = match is_padded {
        true => (pixels * padded * storage.size_bytes()).next_multiple_of(256),
        false => 0,
    };
    let operands = Operands {
        left: match is_padded {
            true => Argument::Workspace { offset_bytes: 0 },
            false => Argument::Input(0),
        },
        right: Argument::Weights(right),
        bias: bias.map_or(Argument::Null, Argument::Weights),
        residual: if epilogue.has_residual { Argument::Input(3) } else { Argument::Null },
        output: Argument::Output(0),
    };
    let mut candidates = candidates(&problem, &[operands], site.chip, workspace_from);
    if is_padded {
        let to = Argument::Workspace { offset_bytes: 0 };
        let pad = pad_rows_launch(storage, pixels, channels, Argument::Input(0), to);
        candidates.iter_mut().for_each(|candidate| candidate.launches.insert(0, pad.clone()));
    }
    let reads = if epilogue.has_residual { vec![0, 3] } else { vec![0] };
    Ok((!candidates.is_empty()).then_some(Selected { candidates, reads }))
}

/// The convolution that a node is, and what follows it.
pub(super) fn convolution<'a>(site: &Site<'a>) -> Option<(&'a Conv, Epilogue)> {
    match (site.operator::<Conv>(), site.operator::<FusedConv>()) {
        (Some(conv), _) => Some((conv, Epilogue::default())),
        (_, Some(fused)) => Some((&fused.conv, fused.epilogue)),
        _ => None,
    }
}

/// The windows that a convolution takes of its images, and its constant weights.
pub(super) struct Windows<'a> {
    pub(super) batch: usize,
    pub(super) filters: usize,
    pub(super) image: Image,
    pub(super) weights: &'a Tensor,
}

/// The windows of a channels-last convolution in two dimensions; `None` for any other.
pub(super) fn windows<'a>(
    site: &Site<'a>,
    conv: &Conv,
    epilogue: &Epilogue,
) -> Option<Windows<'a>> {
    let input = site.float_input(0)?;
    let output = site.float_output()?;
    let weights = site.f32_constant(1)?;
    let axes = conv.axes(&input, weights.shape()).ok()?;
    let (&[batch, height, width, channels], &[filters, ..]) = (&input[..], weights.shape()) else {
        return None;
    };
    let [rows, columns] = &axes[..] else { return None };
    let pair = |read: fn(&AxisWindow) -> usize| [read(rows), read(columns)];
    let image = Image {
        size: [height, width],
        channels,
        output: pair(|axis| axis.output),
        kernel: pair(|axis| axis.kernel),
        strides: pair(|axis| axis.stride),
        dilations: pair(|axis| axis.dilation),
        pads_begin: pair(|axis| axis.pad_begin),
    };
    let bias_fits = !site.has_input(2) || site.f32_constant(2)?.len() == filters;
    let fits = conv.channels_last
        && bias_fits
        && output == [batch, image.output[0], image.output[1], filters]
        && (!epilogue.has_residual || site.float_input(3)? == output);
    fits.then_some(Windows { batch, filters, image, weights })
}

/// Filters `[filters, channels, height, width]` as rows of taps of channels, padded as the image is.
fn filters_by_rows(
    weights: &[f32],
    shape: &Windows<'_>,
    padded: usize,
    stride: usize,
    storage: Storage,
) -> Vec<u8> {
    let channels = shape.image.channels;
    let taps = shape.image.kernel[0] * shape.image.kernel[1];
    stored_rows(shape.filters, taps * padded, stride, storage, |filter, column| {
        let (tap, channel) = (column / padded, column % padded);
        match channel < channels {
            true => weights[(filter * channels + channel) * taps + tap],
            false => 0.0,
        }
    })
}
