//! DenseNet: every layer reads the concatenation of all before it.

use crate::entry::{Entry, Takes};
use crate::layers::{Convolution, Window};
use crate::models::{CLASSES, TINY_CLASSES};
use crate::network::{Network, Signal, batch, fixed};

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "densenet121",
        family: "densenet",
        takes: Takes::Images { side: 224, smallest: Some(32) },
        parameters: 7_978_856,
        assemble: |network| assemble(network, &DENSENET121),
    },
    Entry {
        name: "densenet169",
        family: "densenet",
        takes: Takes::Images { side: 224, smallest: Some(32) },
        parameters: 14_149_480,
        assemble: |network| assemble(network, &DENSENET169),
    },
    Entry {
        name: "tiny_densenet",
        family: "densenet",
        takes: Takes::Images { side: 32, smallest: Some(16) },
        parameters: 27_274,
        assemble: |network| assemble(network, &TINY),
    },
];

struct Size {
    stem: usize,
    /// Channels that each layer adds.
    growth: usize,
    blocks: &'static [usize],
    classes: usize,
}

const DENSENET121: Size = Size { stem: 64, growth: 32, blocks: &[6, 12, 24, 16], classes: CLASSES };
const DENSENET169: Size = Size { stem: 64, growth: 32, blocks: &[6, 12, 32, 32], classes: CLASSES };
const TINY: Size = Size { stem: 16, growth: 8, blocks: &[3, 4], classes: TINY_CLASSES };

const EPSILON: f32 = 1e-5;

fn assemble(network: &mut Network, size: &Size) {
    let x = network.input(0);
    let x = network.convolve("features.conv0", x, Convolution::new(size.stem, 7).stride(2));
    let x = network.batch_norm("features.norm0", x, EPSILON, 1.0);
    let x = network.relu(x);
    let mut x = network.max_pool(x, Window::new(3, 2).padding(1));
    for (block, &layers) in size.blocks.iter().enumerate() {
        let name = format!("features.denseblock{}", block + 1);
        let mut parts = vec![x];
        for layer in 1..=layers {
            // Exporters write one concatenation per layer, each of all parts so far.
            let joined = if layer == 1 { x } else { network.concat(&parts) };
            let layer = format!("{name}.denselayer{layer}");
            parts.push(dense_layer(network, &layer, joined, size.growth));
        }
        x = network.concat(&parts);
        if block + 1 < size.blocks.len() {
            x = transition(network, &format!("features.transition{}", block + 1), x);
        }
    }
    let x = network.batch_norm("features.norm5", x, EPSILON, 1.0);
    let x = network.relu(x);
    let x = network.global_average_pool(x);
    let x = network.flatten(x, 1);
    let logits = network.classify("classifier", x, size.classes);
    network.output("output", logits.id, &[batch(), fixed(size.classes)]);
}

fn dense_layer(network: &mut Network, name: &str, x: Signal, growth: usize) -> Signal {
    let x = network.batch_norm(&format!("{name}.norm1"), x, EPSILON, 1.0);
    let x = network.relu(x);
    let x = network.convolve(&format!("{name}.conv1"), x, Convolution::new(4 * growth, 1));
    let x = network.batch_norm(&format!("{name}.norm2"), x, EPSILON, 1.0);
    let x = network.relu(x);
    network.convolve(&format!("{name}.conv2"), x, Convolution::new(growth, 3))
}

fn transition(network: &mut Network, name: &str, x: Signal) -> Signal {
    let x = network.batch_norm(&format!("{name}.norm"), x, EPSILON, 1.0);
    let x = network.relu(x);
    let x = network.convolve(&format!("{name}.conv"), x, Convolution::new(x.channels / 2, 1));
    network.average_pool(x, Window::new(2, 2))
}
