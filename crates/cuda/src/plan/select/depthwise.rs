//! Two-dimensional convolutions with one filter for each channel.

use super::conv::{convolution, windows};
use super::epilogue::bias_weights;
use crate::kernels::depthwise::DepthwiseProblem;
use crate::kernels::stored::stored;
use crate::launch::Argument;
use crate::plan::site::{Selected, Selection, Site};

/// A channels-last convolution with constant weights and as many groups as channels.
pub(super) fn select(site: &Site<'_>) -> Selection {
    let Some((conv, epilogue)) = convolution(site) else { return Ok(None) };
    let Some(windows) = windows(site, conv, &epilogue) else { return Ok(None) };
    let channels = windows.image.channels;
    if conv.group != channels || windows.filters != channels {
        return Ok(None);
    }
    let storage = site.precision.storage();
    let bias = bias_weights(site)?;
    let taps = windows.image.kernel[0] * windows.image.kernel[1];
    let filters = site.weights.get_or_make(
        windows.weights,
        format!("depthwise filters {channels}x{taps} {storage:?}"),
        |weights| {
            let by_tap = (0..taps).flat_map(|tap| (0..channels).map(move |channel| (tap, channel)));
            stored(by_tap.map(|(tap, channel)| weights[channel * taps + tap]), storage)
        },
    )?;
    let problem = DepthwiseProblem {
        images: windows.batch,
        image: windows.image,
        has_bias: bias.is_some(),
        has_residual: epilogue.has_residual,
        activation: epilogue.activation,
        storage,
    };
    let operands = [
        Argument::Input(0),
        Argument::Weights(filters),
        bias.map_or(Argument::Null, Argument::Weights),
        if epilogue.has_residual { Argument::Input(3) } else { Argument::Null },
        Argument::Output(0),
    ];
    let candidates = problem.candidates(&operands, site.chip);
    let reads = if epilogue.has_residual { vec![0, 3] } else { vec![0] };
    Ok(Selected::among(problem.to_string(), candidates, reads))
}
