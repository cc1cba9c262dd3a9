//! EfficientNet: inverted residuals with squeeze and excitation and SiLU.

use crate::entry::{Entry, Takes};
use crate::layers::{Convolution, Gate, Mean};
use crate::models::{CLASSES, TINY_CLASSES};
use crate::network::{Network, Signal, batch, fixed};

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "efficientnet_b0",
        family: "efficientnet",
        takes: Takes::Images { side: 224, smallest: Some(32) },
        parameters: 5_288_548,
        assemble: |network| assemble(network, &B0),
    },
    Entry {
        name: "tiny_efficientnet",
        family: "efficientnet",
        takes: Takes::Images { side: 32, smallest: Some(16) },
        parameters: 13_248,
        assemble: |network| assemble(network, &TINY),
    },
];

struct Stage {
    expansion: usize,
    kernel: usize,
    stride: usize,
    channels: usize,
    blocks: usize,
}

struct Size {
    stem: usize,
    stages: &'static [Stage],
    head: usize,
    classes: usize,
    mean: Mean,
}

const fn stage(
    expansion: usize,
    kernel: usize,
    stride: usize,
    channels: usize,
    blocks: usize,
) -> Stage {
    Stage { expansion, kernel, stride, channels, blocks }
}

const B0: Size = Size {
    stem: 32,
    stages: &[
        stage(1, 3, 1, 16, 1),
        stage(6, 3, 2, 24, 2),
        stage(6, 5, 2, 40, 2),
        stage(6, 3, 2, 80, 3),
        stage(6, 5, 1, 112, 3),
        stage(6, 5, 2, 192, 4),
        stage(6, 3, 1, 320, 1),
    ],
    head: 1280,
    classes: CLASSES,
    mean: Mean::Pool,
};
const TINY: Size = Size {
    stem: 8,
    stages: &[stage(1, 3, 1, 8, 1), stage(4, 3, 2, 12, 2), stage(4, 5, 2, 16, 2)],
    head: 64,
    classes: TINY_CLASSES,
    mean: Mean::Reduce,
};

const EPSILON: f32 = 1e-5;

/// The scale of residual branches, so that their sum grows slowly.
const BRANCH_GAIN: f32 = 0.5;

fn assemble(network: &mut Network, size: &Size) {
    let x = network.input(0);
    let mut x = active(network, "features.0", x, Convolution::new(size.stem, 3).stride(2));
    for (index, stage) in size.stages.iter().enumerate() {
        for block in 0..stage.blocks {
            let stride = if block == 0 { stage.stride } else { 1 };
            let name = format!("features.{}.{block}.block", index + 1);
            x = inverted_residual(network, &name, x, stage, stride, size.mean);
        }
    }
    let head = Convolution::new(size.head, 1);
    let x = active(network, &format!("features.{}", size.stages.len() + 1), x, head);
    let x = network.global_average_pool(x);
    let x = network.flatten(x, 1);
    let logits = network.classify("classifier.1", x, size.classes);
    network.output("output", logits.id, &[batch(), fixed(size.classes)]);
}

fn active(network: &mut Network, name: &str, x: Signal, convolution: Convolution) -> Signal {
    let x = network.convolve(&format!("{name}.0"), x, convolution);
    let x = network.batch_norm(&format!("{name}.1"), x, EPSILON, 1.0);
    network.silu(x)
}

fn inverted_residual(
    network: &mut Network,
    name: &str,
    x: Signal,
    stage: &Stage,
    stride: usize,
    mean: Mean,
) -> Signal {
    let mut branch = x;
    let mut place = 0;
    if stage.expansion != 1 {
        let expansion = Convolution::new(x.channels * stage.expansion, 1);
        branch = active(network, &format!("{name}.{place}"), branch, expansion);
        place += 1;
    }
    let depthwise = Convolution::depthwise(branch.channels, stage.kernel).stride(stride);
    branch = active(network, &format!("{name}.{place}"), branch, depthwise);
    let squeeze = format!("{name}.{}", place + 1);
    branch = network.squeeze_excitation(&squeeze, branch, x.channels / 4, mean, Gate::Sigmoid);
    let projection = format!("{name}.{}", place + 2);
    branch =
        network.convolve(&format!("{projection}.0"), branch, Convolution::new(stage.channels, 1));
    let is_residual = stride == 1 && x.channels == stage.channels;
    let gain = if is_residual { BRANCH_GAIN } else { 1.0 };
    branch = network.batch_norm(&format!("{projection}.1"), branch, EPSILON, gain);
    if is_residual { network.add(branch, x) } else { branch }
}
