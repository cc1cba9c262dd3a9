//! MobileNet V2: inverted residuals with linear bottlenecks and ReLU6.

use crate::entry::{Entry, Takes};
use crate::layers::Convolution;
use crate::models::{CLASSES, TINY_CLASSES};
use crate::network::{Network, Signal, batch, fixed};

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "mobilenet_v2",
        family: "mobilenet_v2",
        takes: Takes::Images { side: 224, smallest: Some(32) },
        parameters: 3_504_872,
        assemble: |network| assemble(network, &MOBILENET_V2),
    },
    Entry {
        name: "tiny_mobilenet_v2",
        family: "mobilenet_v2",
        takes: Takes::Images { side: 32, smallest: Some(16) },
        parameters: 9_994,
        assemble: |network| assemble(network, &TINY),
    },
];

struct Stage {
    expansion: usize,
    channels: usize,
    blocks: usize,
    stride: usize,
}

struct Size {
    stem: usize,
    stages: &'static [Stage],
    head: usize,
    classes: usize,
}

const fn stage(expansion: usize, channels: usize, blocks: usize, stride: usize) -> Stage {
    Stage { expansion, channels, blocks, stride }
}

const MOBILENET_V2: Size = Size {
    stem: 32,
    stages: &[
        stage(1, 16, 1, 1),
        stage(6, 24, 2, 2),
        stage(6, 32, 3, 2),
        stage(6, 64, 4, 2),
        stage(6, 96, 3, 1),
        stage(6, 160, 3, 2),
        stage(6, 320, 1, 1),
    ],
    head: 1280,
    classes: CLASSES,
};
const TINY: Size = Size {
    stem: 8,
    stages: &[stage(1, 8, 1, 1), stage(4, 12, 2, 2), stage(4, 16, 2, 2)],
    head: 64,
    classes: TINY_CLASSES,
};

const EPSILON: f32 = 1e-5;

/// The scale of residual branches, so that their sum grows slowly.
const BRANCH_GAIN: f32 = 0.5;

fn assemble(network: &mut Network, size: &Size) {
    let x = network.input(0);
    let mut x = active(network, "features.0", x, Convolution::new(size.stem, 3).stride(2));
    let mut place = 1;
    for stage in size.stages {
        for index in 0..stage.blocks {
            let stride = if index == 0 { stage.stride } else { 1 };
            x = block(network, &format!("features.{place}.conv"), x, stage, stride);
            place += 1;
        }
    }
    let x = active(network, &format!("features.{place}"), x, Convolution::new(size.head, 1));
    let x = network.global_average_pool(x);
    let x = network.flatten(x, 1);
    let logits = network.classify("classifier.1", x, size.classes);
    network.output("output", logits.id, &[batch(), fixed(size.classes)]);
}

fn active(network: &mut Network, name: &str, x: Signal, convolution: Convolution) -> Signal {
    let x = network.convolve(&format!("{name}.0"), x, convolution);
    let x = network.batch_norm(&format!("{name}.1"), x, EPSILON, 1.0);
    network.relu6(x)
}

fn block(network: &mut Network, name: &str, x: Signal, stage: &Stage, stride: usize) -> Signal {
    let mut branch = x;
    let mut place = 0;
    if stage.expansion != 1 {
        let expanded = Convolution::new(x.channels * stage.expansion, 1);
        branch = active(network, &format!("{name}.{place}"), branch, expanded);
        place += 1;
    }
    let depthwise = Convolution::depthwise(branch.channels, 3).stride(stride);
    branch = active(network, &format!("{name}.{place}"), branch, depthwise);
    let projection = Convolution::new(stage.channels, 1);
    branch = network.convolve(&format!("{name}.{}", place + 1), branch, projection);
    let is_residual = stride == 1 && x.channels == stage.channels;
    let gain = if is_residual { BRANCH_GAIN } else { 1.0 };
    branch = network.batch_norm(&format!("{name}.{}", place + 2), branch, EPSILON, gain);
    if is_residual { network.add(x, branch) } else { branch }
}
