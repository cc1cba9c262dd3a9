//! MobileNet V3: inverted residuals with squeeze and excitation and hard activations.

use crate::entry::{Entry, Takes};
use crate::layers::{Convolution, Gate, Mean};
use crate::models::{CLASSES, TINY_CLASSES, divisible};
use crate::network::{Network, Signal, batch, fixed};

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "mobilenet_v3_large",
        family: "mobilenet_v3",
        takes: Takes::Images { side: 224, smallest: Some(32) },
        parameters: 5_483_032,
        assemble: |network| assemble(network, &LARGE),
    },
    Entry {
        name: "mobilenet_v3_small",
        family: "mobilenet_v3",
        takes: Takes::Images { side: 224, smallest: Some(32) },
        parameters: 2_542_856,
        assemble: |network| assemble(network, &SMALL),
    },
    Entry {
        name: "tiny_mobilenet_v3",
        family: "mobilenet_v3",
        takes: Takes::Images { side: 32, smallest: Some(16) },
        parameters: 13_490,
        assemble: |network| assemble(network, &TINY),
    },
];

#[derive(Clone, Copy)]
enum Activation {
    Relu,
    HardSwish,
}

use Activation::{HardSwish, Relu};

struct Block {
    kernel: usize,
    expanded: usize,
    channels: usize,
    squeezes: bool,
    activation: Activation,
    stride: usize,
}

struct Size {
    stem: usize,
    blocks: &'static [Block],
    hidden: usize,
    classes: usize,
    /// Whether hard activations are spelled out, as exporters do for opsets that lack them.
    primitives: bool,
}

const fn block(
    kernel: usize,
    expanded: usize,
    channels: usize,
    squeezes: bool,
    activation: Activation,
    stride: usize,
) -> Block {
    Block { kernel, expanded, channels, squeezes, activation, stride }
}

const LARGE: Size = Size {
    stem: 16,
    blocks: &[
        block(3, 16, 16, false, Relu, 1),
        block(3, 64, 24, false, Relu, 2),
        block(3, 72, 24, false, Relu, 1),
        block(5, 72, 40, true, Relu, 2),
        block(5, 120, 40, true, Relu, 1),
        block(5, 120, 40, true, Relu, 1),
        block(3, 240, 80, false, HardSwish, 2),
        block(3, 200, 80, false, HardSwish, 1),
        block(3, 184, 80, false, HardSwish, 1),
        block(3, 184, 80, false, HardSwish, 1),
        block(3, 480, 112, true, HardSwish, 1),
        block(3, 672, 112, true, HardSwish, 1),
        block(5, 672, 160, true, HardSwish, 2),
        block(5, 960, 160, true, HardSwish, 1),
        block(5, 960, 160, true, HardSwish, 1),
    ],
    hidden: 1280,
    classes: CLASSES,
    primitives: false,
};
const SMALL: Size = Size {
    stem: 16,
    blocks: &[
        block(3, 16, 16, true, Relu, 2),
        block(3, 72, 24, false, Relu, 2),
        block(3, 88, 24, false, Relu, 1),
        block(5, 96, 40, true, HardSwish, 2),
        block(5, 240, 40, true, HardSwish, 1),
        block(5, 240, 40, true, HardSwish, 1),
        block(5, 120, 48, true, HardSwish, 1),
        block(5, 144, 48, true, HardSwish, 1),
        block(5, 288, 96, true, HardSwish, 2),
        block(5, 576, 96, true, HardSwish, 1),
        block(5, 576, 96, true, HardSwish, 1),
    ],
    hidden: 1024,
    classes: CLASSES,
    primitives: false,
};
const TINY: Size = Size {
    stem: 8,
    blocks: &[
        block(3, 8, 8, true, Relu, 1),
        block(3, 24, 12, false, Relu, 2),
        block(5, 32, 16, true, HardSwish, 2),
        block(5, 48, 16, true, HardSwish, 1),
    ],
    hidden: 32,
    classes: TINY_CLASSES,
    primitives: true,
};

const EPSILON: f32 = 1e-3;

/// The scale of residual branches, so that their sum grows slowly.
const BRANCH_GAIN: f32 = 0.5;

fn assemble(network: &mut Network, size: &Size) {
    let x = network.input(0);
    let x = normalised(network, "features.0", x, Convolution::new(size.stem, 3).stride(2), 1.0);
    let mut x = activate(network, x, HardSwish, size.primitives);
    for (index, block) in size.blocks.iter().enumerate() {
        x = inverted_residual(network, &format!("features.{}.block", index + 1), x, block, size);
    }
    let last = Convolution::new(6 * x.channels, 1);
    let x = normalised(network, &format!("features.{}", size.blocks.len() + 1), x, last, 1.0);
    let x = activate(network, x, HardSwish, size.primitives);
    let x = network.global_average_pool(x);
    let x = network.flatten(x, 1);
    let x = network.classify("classifier.0", x, size.hidden);
    let x = activate(network, x, HardSwish, size.primitives);
    let logits = network.classify("classifier.3", x, size.classes);
    network.output("output", logits.id, &[batch(), fixed(size.classes)]);
}

fn normalised(
    network: &mut Network,
    name: &str,
    x: Signal,
    convolution: Convolution,
    gain: f32,
) -> Signal {
    let x = network.convolve(&format!("{name}.0"), x, convolution);
    network.batch_norm(&format!("{name}.1"), x, EPSILON, gain)
}

fn activate(network: &mut Network, x: Signal, activation: Activation, primitives: bool) -> Signal {
    match activation {
        Relu => network.relu(x),
        HardSwish if primitives => network.hard_swish_primitives(x),
        HardSwish => network.hard_swish(x),
    }
}

fn inverted_residual(
    network: &mut Network,
    name: &str,
    x: Signal,
    block: &Block,
    size: &Size,
) -> Signal {
    let mut branch = x;
    let mut place = 0;
    if block.expanded != x.channels {
        let expansion = Convolution::new(block.expanded, 1);
        branch = normalised(network, &format!("{name}.{place}"), branch, expansion, 1.0);
        branch = activate(network, branch, block.activation, size.primitives);
        place += 1;
    }
    let depthwise = Convolution::depthwise(block.expanded, block.kernel).stride(block.stride);
    branch = normalised(network, &format!("{name}.{place}"), branch, depthwise, 1.0);
    branch = activate(network, branch, block.activation, size.primitives);
    place += 1;
    if block.squeezes {
        let squeezed = divisible(block.expanded as f32 / 4.0);
        let (mean, gate) = if size.primitives {
            (Mean::Reduce, Gate::HardSigmoidPrimitives)
        } else {
            (Mean::Pool, Gate::HardSigmoid)
        };
        branch =
            network.squeeze_excitation(&format!("{name}.{place}"), branch, squeezed, mean, gate);
        place += 1;
    }
    let is_residual = block.stride == 1 && x.channels == block.channels;
    let gain = if is_residual { BRANCH_GAIN } else { 1.0 };
    let projection = Convolution::new(block.channels, 1);
    branch = normalised(network, &format!("{name}.{place}"), branch, projection, gain);
    if is_residual { network.add(branch, x) } else { branch }
}
