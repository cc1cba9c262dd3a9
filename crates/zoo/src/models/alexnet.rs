//! AlexNet: five convolutions and three fully connected layers.

use crate::entry::{Entry, Takes};
use crate::layers::{Convolution, Window};
use crate::models::{CLASSES, TINY_CLASSES};
use crate::network::{Network, batch, fixed};

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "alexnet",
        family: "alexnet",
        takes: Takes::Images { side: 224, smallest: None },
        parameters: 61_100_840,
        assemble: |network| assemble(network, &ALEXNET),
    },
    Entry {
        name: "tiny_alexnet",
        family: "alexnet",
        takes: Takes::Images { side: 64, smallest: None },
        parameters: 17_330,
        assemble: |network| assemble(network, &TINY),
    },
];

struct Size {
    channels: [usize; 5],
    /// Pixels that the last pool leaves; the adaptive pool to 6 by 6 that follows it changes nothing at 224.
    pixels: usize,
    hidden: usize,
    classes: usize,
}

const ALEXNET: Size =
    Size { channels: [64, 192, 384, 256, 256], pixels: 36, hidden: 4096, classes: CLASSES };
const TINY: Size =
    Size { channels: [8, 16, 24, 16, 16], pixels: 1, hidden: 32, classes: TINY_CLASSES };

fn assemble(network: &mut Network, size: &Size) {
    let [first, second, third, fourth, fifth] = size.channels;
    let pool = Window::new(3, 2);
    let layers = [
        ("features.0", Convolution::new(first, 11).stride(4).padding(2), true),
        ("features.3", Convolution::new(second, 5), true),
        ("features.6", Convolution::new(third, 3), false),
        ("features.8", Convolution::new(fourth, 3), false),
        ("features.10", Convolution::new(fifth, 3), true),
    ];
    let mut x = network.input(0);
    for (name, convolution, pooled) in layers {
        x = network.convolve(name, x, convolution.bias());
        x = network.relu(x);
        if pooled {
            x = network.max_pool(x, pool);
        }
    }
    x = network.flatten(x, size.pixels);
    for name in ["classifier.1", "classifier.4"] {
        x = network.classify(name, x, size.hidden);
        x = network.relu(x);
    }
    let logits = network.classify("classifier.6", x, size.classes);
    network.output("output", logits.id, &[batch(), fixed(size.classes)]);
}
