//! VGG: stages of 3x3 convolutions, each halved by a pool, and three fully connected layers.

use crate::entry::{Entry, Takes};
use crate::layers::{Convolution, Window};
use crate::models::{CLASSES, TINY_CLASSES};
use crate::network::{Network, batch, fixed};

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "vgg16",
        family: "vgg",
        takes: Takes::Images { side: 224, smallest: None },
        parameters: 138_357_544,
        assemble: |network| assemble(network, &VGG16),
    },
    Entry {
        name: "tiny_vgg",
        family: "vgg",
        takes: Takes::Images { side: 32, smallest: None },
        parameters: 65_074,
        assemble: |network| assemble(network, &TINY),
    },
];

struct Size {
    /// Channels and number of convolutions of each stage.
    stages: &'static [(usize, usize)],
    /// Pixels that the last pool leaves; the adaptive pool to 7 by 7 that follows it changes nothing at 224.
    pixels: usize,
    hidden: usize,
    classes: usize,
}

const VGG16: Size = Size {
    stages: &[(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)],
    pixels: 49,
    hidden: 4096,
    classes: CLASSES,
};
const TINY: Size =
    Size { stages: &[(8, 2), (16, 2), (32, 3)], pixels: 16, hidden: 64, classes: TINY_CLASSES };

fn assemble(network: &mut Network, size: &Size) {
    let mut x = network.input(0);
    // Layers are numbered with their activations and pools, as in a sequential module.
    let mut place = 0;
    for &(channels, count) in size.stages {
        for _ in 0..count {
            let convolution = Convolution::new(channels, 3).bias();
            x = network.convolve(&format!("features.{place}"), x, convolution);
            x = network.relu(x);
            place += 2;
        }
        x = network.max_pool(x, Window::new(2, 2));
        place += 1;
    }
    x = network.flatten(x, size.pixels);
    for name in ["classifier.0", "classifier.3"] {
        x = network.classify(name, x, size.hidden);
        x = network.relu(x);
    }
    let logits = network.classify("classifier.6", x, size.classes);
    network.output("output", logits.id, &[batch(), fixed(size.classes)]);
}
