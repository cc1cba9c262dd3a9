//! ResNet: residual blocks of two 3x3 convolutions (basic) or of 1x1, 3x3, 1x1 (bottleneck).

use crate::entry::{Entry, Takes};
use crate::layers::{Convolution, Window};
use crate::models::{CLASSES, TINY_CLASSES};
use crate::network::{Network, Signal, batch, fixed};

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "resnet18",
        family: "resnet",
        takes: Takes::Images { side: 224, smallest: Some(32) },
        parameters: 11_689_512,
        assemble: |network| assemble(network, &RESNET18),
    },
    Entry {
        name: "resnet34",
        family: "resnet",
        takes: Takes::Images { side: 224, smallest: Some(32) },
        parameters: 21_797_672,
        assemble: |network| assemble(network, &RESNET34),
    },
    Entry {
        name: "resnet50",
        family: "resnet",
        takes: Takes::Images { side: 224, smallest: Some(32) },
        parameters: 25_557_032,
        assemble: |network| assemble(network, &RESNET50),
    },
    Entry {
        name: "resnet101",
        family: "resnet",
        takes: Takes::Images { side: 224, smallest: Some(32) },
        parameters: 44_549_160,
        assemble: |network| assemble(network, &RESNET101),
    },
    Entry {
        name: "tiny_resnet",
        family: "resnet",
        takes: Takes::Images { side: 32, smallest: Some(16) },
        parameters: 22_226,
        assemble: |network| assemble(network, &TINY),
    },
];

struct Size {
    width: usize,
    blocks: &'static [usize],
    /// How much wider a block's output is than its inner convolutions: 1 makes blocks basic, more bottlenecks.
    expansion: usize,
    classes: usize,
}

const RESNET18: Size = Size { width: 64, blocks: &[2, 2, 2, 2], expansion: 1, classes: CLASSES };
const RESNET34: Size = Size { width: 64, blocks: &[3, 4, 6, 3], expansion: 1, classes: CLASSES };
const RESNET50: Size = Size { width: 64, blocks: &[3, 4, 6, 3], expansion: 4, classes: CLASSES };
const RESNET101: Size = Size { width: 64, blocks: &[3, 4, 23, 3], expansion: 4, classes: CLASSES };
const TINY: Size = Size { width: 8, blocks: &[2, 1, 1], expansion: 2, classes: TINY_CLASSES };

const EPSILON: f32 = 1e-5;

/// The scale of residual branches, so that their sum grows slowly.
const BRANCH_GAIN: f32 = 0.4;

fn assemble(network: &mut Network, size: &Size) {
    let x = network.input(0);
    let x = network.convolve("conv1", x, Convolution::new(size.width, 7).stride(2));
    let x = network.batch_norm("bn1", x, EPSILON, 1.0);
    let x = network.relu(x);
    let mut x = network.max_pool(x, Window::new(3, 2).padding(1));
    for (stage, &count) in size.blocks.iter().enumerate() {
        for index in 0..count {
            let stride = if stage > 0 && index == 0 { 2 } else { 1 };
            let name = format!("layer{}.{index}", stage + 1);
            x = block(network, &name, x, size.width << stage, size.expansion, stride);
        }
    }
    let x = network.global_average_pool(x);
    let x = network.flatten(x, 1);
    let logits = network.classify("fc", x, size.classes);
    network.output("output", logits.id, &[batch(), fixed(size.classes)]);
}

fn block(
    network: &mut Network,
    name: &str,
    x: Signal,
    width: usize,
    expansion: usize,
    stride: usize,
) -> Signal {
    let layers = if expansion == 1 {
        vec![Convolution::new(width, 3).stride(stride), Convolution::new(width, 3)]
    } else {
        vec![
            Convolution::new(width, 1),
            Convolution::new(width, 3).stride(stride),
            Convolution::new(width * expansion, 1),
        ]
    };
    let mut branch = x;
    for (index, &convolution) in layers.iter().enumerate() {
        let is_last = index + 1 == layers.len();
        branch = network.convolve(&format!("{name}.conv{}", index + 1), branch, convolution);
        let gain = if is_last { BRANCH_GAIN } else { 1.0 };
        branch = network.batch_norm(&format!("{name}.bn{}", index + 1), branch, EPSILON, gain);
        if !is_last {
            branch = network.relu(branch);
        }
    }
    let shortcut = if stride != 1 || x.channels != width * expansion {
        let convolution = Convolution::new(width * expansion, 1).stride(stride);
        let shortcut = network.convolve(&format!("{name}.downsample.0"), x, convolution);
        network.batch_norm(&format!("{name}.downsample.1"), shortcut, EPSILON, 1.0)
    } else {
        x
    };
    let sum = network.add(branch, shortcut);
    let active = network.relu(sum);
    if shortcut.id == x.id {
        // The block's input is positive already, so that only the branch loses by ReLU.
        return active.then(active.id, x.energy + branch.energy / 2.0);
    }
    active
}
