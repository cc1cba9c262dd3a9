//! Dense two-dimensional convolutions with constant weights, as products on tensor cores.

use std::sync::Arc;

use weft_device::DeviceError;
use weft_ir::Tensor;
use weft_ir::operators::convolution::{AxisWindow, Conv};
use weft_ir::operators::fused::{Epilogue, FusedConv};

use super::epilogue::{bias_weights, right_stride};
use super::filters::FilterLayout;
use super::libraries::{self, Library};
use crate::Storage;
use crate::choosing::Wanted;
use crate::kernels::gemm::{GemmProblem, Image, Left, Operands, Right, candidates, least_estimate};
use crate::kernels::naive_product::naive_product;
use crate::kernels::pad_rows::{pad_rows_launch, padded_columns};
use crate::kernels::stem_conv::StemConv;
use crate::kernels::stored::stored;
use crate::kernels::window_conv::{WindowConv, WindowOperands};
use crate::launch::{Argument, Candidate, DeviceWeights};
use crate::plan::site::{Selected, Selection, Site};

/// A channels-last convolution with one group, fused or plain.
pub(super) fn select(site: &Site<'_>) -> Selection {
    let Some(dense) = Dense::of(site)? else { return Ok(None) };
    let Dense { shape, epilogue, problem, operands, bias, unpadded, workspace_from } = &dense;
    let (storage, workspace_from) = (site.precision.storage(), *workspace_from);
    let operator = dense.operator();
    let wanted = site.wanted(&operator);
    let libraries = site.libraries.of(&wanted);
    let of_library = Operands { bias: libraries::bias(site, libraries)?, ..operands.clone() };
    let mut reference =
        naive_product(problem, std::slice::from_ref(operands), workspace_from, &wanted);
    let in_windows = dense.in_windows(site, &wanted);
    let mut candidates =
        candidates(problem, std::slice::from_ref(operands), site.chip, workspace_from, &wanted);
    candidates.splice(in_windows.place..in_windows.place, in_windows.candidates);
    let library = Library { set: libraries, wanted: &wanted };
    candidates.extend(library.products(site, problem, &of_library, workspace_from));
    if let Some(channels) = *unpadded {
        let pixels = shape.batch * shape.image.size[0] * shape.image.size[1];
        let to = Argument::Workspace { offset_bytes: 0 };
        let pad = pad_rows_launch(storage, pixels, channels, Argument::Input(0), to);
        let all = candidates.iter_mut().chain(&mut reference);
        all.for_each(|candidate| candidate.launches.insert(0, pad.clone()));
    }
    candidates.extend(library.convolutions(site, shape, epilogue)?);
    candidates.splice(0..0, stem(site, shape, epilogue, bias.clone())?);
    let reads = if epilogue.has_residual { vec![0, 3] } else { vec![0] };
    let selected = Selected::among(operator, candidates, reads);
    Ok(selected.map(|selected| Selected { reference, ..selected }))
}

/// A convolution as a product, with its weights on the device.
pub(super) struct Dense<'a> {
    shape: Windows<'a>,
    epilogue: Epilogue,
    pub(super) problem: GemmProblem,
    operands: Operands,
    bias: Option<Arc<DeviceWeights>>,
    /// Channels of the image as it is given, where they have to be padded.
    unpadded: Option<usize>,
    /// What padded pixels take of the workspace.
    workspace_from: usize,
}

impl<'a> Dense<'a> {
    pub(super) fn of(site: &Site<'a>) -> Result<Option<Self>, DeviceError> {
        let Some((conv, epilogue)) = convolution(site) else { return Ok(None) };
        let Some(shape) = windows(site, conv, &epilogue).filter(|_| conv.group == 1) else {
            return Ok(None);
        };
        let bias = bias_weights(site)?;
        let storage = site.precision.storage();
        let channels = shape.image.channels;
        let padded = padded_columns(channels, storage);
        let pairing = Pairing::of(&shape.image, padded, storage);
        let image = match pairing {
            Some(pairing) => pairing.image(&shape.image, padded),
            None => Image { channels: padded, ..shape.image },
        };
        let k = image.kernel[0] * image.kernel[1] * image.channels;
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
            left: match is_pointwise {
                true => Left::Matrix { stride: padded },
                false => Left::Image(image),
            },
            right: Right { by_rows: false, stride: right_stride(k, storage), is_weights: true },
            bias: bias.as_ref().map(|_| Storage::F32),
            has_residual: epilogue.has_residual,
            activation: epilogue.activation,
            precision: site.precision,
        };
        if !problem.is_supported() {
            return Ok(None);
        }
        let layout = FilterLayout {
            channels: padded,
            width: image.kernel[1] * image.channels / padded,
            first_tap: pairing.map_or(0, |pairing| pairing.first_tap),
            stride: problem.right.stride,
        };
        let right = layout.filters(site, &shape)?;
        let pixels = shape.batch * shape.image.size[0] * shape.image.size[1];
        let unpadded = (padded != channels).then_some(channels);
        let operands = Operands {
            left: match unpadded {
                Some(_) => Argument::Workspace { offset_bytes: 0 },
                None => Argument::Input(0),
            },
            right: Argument::Weights(right),
            bias: bias.clone().map_or(Argument::Null, Argument::Weights),
            residual: if epilogue.has_residual { Argument::Input(3) } else { Argument::Null },
            output: Argument::Output(0),
        };
        let padded_bytes = (pixels * padded * storage.size_bytes()).next_multiple_of(256);
        let workspace_from = if unpadded.is_some() { padded_bytes } else { 0 };
        let dense = Self { shape, epilogue, problem, operands, bias, unpadded, workspace_from };
        Ok(Some(dense))
    }

    /// What is computed, as choices know it.
    pub(super) fn operator(&self) -> String {
        match self.unpadded {
            Some(channels) => format!("{}, from {channels} channels", self.problem),
            None => self.problem.to_string(),
        }
    }

    /// The convolution with what its windows cover in shared memory, and what the kernel is given.
    pub(super) fn of_windows(&self, is_pooled: bool) -> (WindowConv, WindowOperands) {
        let conv = WindowConv {
            images: self.shape.batch,
            image: self.shape.image,
            filters: self.shape.filters,
            filter_stride: self.problem.right.stride,
            has_bias: self.problem.bias.is_some(),
            has_residual: self.problem.has_residual,
            activation: self.problem.activation,
            is_pooled,
            precision: self.problem.precision,
        };
        let Operands { left, right, bias, residual, output } = self.operands.clone();
        (conv, WindowOperands { image: left, weights: right, bias, residual, output })
    }

    /// They stand before the products where one of them is expected to be faster, else after the first.
    fn in_windows(&self, site: &Site<'_>, wanted: &Wanted) -> InWindows {
        let (conv, operands) = self.of_windows(false);
        let (entries, chip) = wanted.entries_on(site.chip);
        let all = matches!(wanted, Wanted::All | Wanted::Named(_));
        let mut expected = conv.candidates(&operands, chip, entries, all);
        let least = least_estimate(&self.problem, site.chip, wanted);
        let is_first = match (expected.first(), least) {
            (Some(best), Some(least)) => best.cycles < least,
            (best, _) => best.is_some(),
        };
        let place = usize::from(!is_first && least.is_some());
        let best = expected.first().filter(|_| is_first).map(|best| best.candidate.name.clone());
        expected.retain(|of| {
            wanted.includes(&of.candidate.name) || best.as_ref() == Some(&of.candidate.name)
        });
        InWindows { place, candidates: expected.into_iter().map(|of| of.candidate).collect() }
    }

    /// The cycles that the convolution is expected to take at the least, in windows or as a product.
    pub(super) fn least_estimate(&self, site: &Site<'_>, wanted: &Wanted) -> f64 {
        let (conv, operands) = self.of_windows(false);
        let (entries, chip) = wanted.entries_on(site.chip);
        let in_windows = conv.candidates(&operands, chip, entries, false);
        let in_windows = in_windows.first().map(|best| best.cycles);
        let all = in_windows.into_iter().chain(least_estimate(&self.problem, site.chip, wanted));
        all.fold(f64::INFINITY, f64::min)
    }
}

/// Ways to compute a convolution with what its windows cover in shared memory, and their place among those of products.
struct InWindows {
    place: usize,
    candidates: Vec<Candidate>,
}

/// The ways to compute a convolution of few channels straight from the image, with channels beside them where windows would
/// lie an odd number of values apart; none where it is no such convolution.
fn stem(
    site: &Site<'_>,
    windows: &Windows<'_>,
    epilogue: &Epilogue,
    bias: Option<Arc<DeviceWeights>>,
) -> Result<Vec<Candidate>, DeviceError> {
    let storage = site.precision.storage();
    let Image { size, channels, strides, .. } = windows.image;
    let is_padded = !(strides[1] * channels).is_multiple_of(2);
    let padded = if is_padded { padded_columns(channels, storage) } else { channels };
    let conv = StemConv {
        images: windows.batch,
        image: Image { channels: padded, ..windows.image },
        filters: windows.filters,
        filter_channels: channels,
        has_bias: bias.is_some(),
        activation: epilogue.activation,
        precision: site.precision,
    };
    if epilogue.has_residual || !conv.is_supported() {
        return Ok(Vec::new());
    }
    let pad = windows.image.pads_begin[1];
    let shape = windows.weights.shape();
    let form = format!("stem filters {shape:?} of {padded} channels pad {pad} {storage:?}");
    let make = |weights: &[f32]| stored(conv.weights(weights), storage);
    let weights = site.weights.get_or_make(windows.weights, form, make)?;
    let image = Argument::Workspace { offset_bytes: 0 };
    let operands = [
        if is_padded { image.clone() } else { Argument::Input(0) },
        Argument::Weights(weights),
        bias.map_or(Argument::Null, Argument::Weights),
        Argument::Output(0),
    ];
    let mut candidates = conv.candidates(&operands, site.chip);
    if is_padded {
        let pixels = windows.batch * size[0] * size[1];
        let pad = pad_rows_launch(storage, pixels, channels, Argument::Input(0), image);
        for candidate in &mut candidates {
            candidate.launches.insert(0, pad.clone());
            candidate.workspace_bytes = pixels * padded * storage.size_bytes();
        }
    }
    Ok(candidates)
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

/// Two neighbouring pixels as one of twice the channels, so that a window that moves by two pixels takes wide loads.
#[derive(Clone, Copy, Debug)]
struct Pairing {
    /// The place of the filter's first tap among the pixels of the window's pairs: 0 or 1.
    first_tap: usize,
    /// Pairs of pixels that a row of the window touches.
    pairs: usize,
    /// Pairs before the image that the first window starts at.
    pad_begin: usize,
}

impl Pairing {
    /// Where the window moves by two pixels, whose channels are too few for a load of 16 bytes and whose pairs are
    /// enough.
    fn of(image: &Image, padded: usize, storage: Storage) -> Option<Self> {
        let pixel_bytes = padded * storage.size_bytes();
        let fits = pixel_bytes == 8
            && image.strides[1] == 2
            && image.dilations[1] == 1
            && image.size[1].is_multiple_of(2);
        let pad = image.pads_begin[1];
        let first_tap = pad % 2;
        fits.then(|| Self {
            first_tap,
            pairs: (first_tap + image.kernel[1]).div_ceil(2),
            pad_begin: pad.div_ceil(2),
        })
    }

    /// The image of pairs.
    fn image(&self, image: &Image, padded: usize) -> Image {
        Image {
            size: [image.size[0], image.size[1] / 2],
            channels: 2 * padded,
            kernel: [image.kernel[0], self.pairs],
            strides: [image.strides[0], 1],
            pads_begin: [image.pads_begin[0], self.pad_begin],
            ..*image
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every tap of every window lies in the pair, and at the place in it, that the image of pairs says.
    #[test]
    fn pairs_hold_the_pixels_of_their_windows() {
        for (kernel, pad, width) in [(7, 3, 224), (3, 1, 32), (3, 0, 8), (5, 2, 10), (2, 0, 6)] {
            let image = Image {
                size: [width; 2],
                channels: 3,
                output: [(width + 2 * pad - kernel) / 2 + 1; 2],
                kernel: [kernel; 2],
                strides: [2; 2],
                dilations: [1; 2],
                pads_begin: [pad; 2],
            };
            let pairing = Pairing::of(&image, 4, Storage::F16).unwrap();
            let paired = pairing.image(&image, 4);
            for output in 0..image.output[1] {
                for tap in 0..kernel {
                    let pixel = (2 * output + tap) as isize - pad as isize;
                    let place = pairing.first_tap + tap;
                    let pair = (output + place / 2) as isize - paired.pads_begin[1] as isize;
                    assert_eq!(
                        pixel,
                        2 * pair + (place % 2) as isize,
                        "kernel {kernel}, pad {pad}"
                    );
                    assert!(place / 2 < paired.kernel[1]);
                }
            }
        }
        let plain = Image {
            size: [8; 2],
            channels: 3,
            output: [6; 2],
            kernel: [3; 2],
            strides: [1; 2],
            dilations: [1; 2],
            pads_begin: [0; 2],
        };
        assert!(Pairing::of(&plain, 4, Storage::F16).is_none());
    }
}
