//! SqueezeNet: fire modules, which squeeze channels before they expand them again.

use crate::entry::{Entry, Takes};
use crate::layers::{Convolution, Window};
use crate::models::{CLASSES, TINY_CLASSES};
use crate::network::{Network, Signal, batch, fixed};

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "squeezenet1_1",
        family: "squeezenet",
        takes: Takes::Images { side: 224, smallest: Some(32) },
        parameters: 1_235_496,
        assemble: |network| assemble(network, &SQUEEZENET1_1),
    },
    Entry {
        name: "tiny_squeezenet",
        family: "squeezenet",
        takes: Takes::Images { side: 40, smallest: Some(32) },
        parameters: 2_778,
        assemble: |network| assemble(network, &TINY),
    },
];

enum Layer {
    Pool,
    /// Channels squeezed to, and those of each of the two expansions.
    Fire(usize, usize),
}

use Layer::{Fire, Pool};

struct Size {
    stem: usize,
    layers: &'static [Layer],
    classes: usize,
}

const SQUEEZENET1_1: Size = Size {
    stem: 64,
    layers: &[
        Pool,
        Fire(16, 64),
        Fire(16, 64),
        Pool,
        Fire(32, 128),
        Fire(32, 128),
        Pool,
        Fire(48, 192),
        Fire(48, 192),
        Fire(64, 256),
        Fire(64, 256),
    ],
    classes: CLASSES,
};
const TINY: Size = Size {
    stem: 8,
    layers: &[Pool, Fire(4, 8), Fire(4, 8), Pool, Fire(8, 16)],
    classes: TINY_CLASSES,
};

fn assemble(network: &mut Network, size: &Size) {
    let x = network.input(0);
    let stem = Convolution::new(size.stem, 3).stride(2).padding(0);
    let mut x = active(network, "features.0", x, stem);
    for (index, layer) in size.layers.iter().enumerate() {
        x = match *layer {
            Pool => network.max_pool(x, Window::new(3, 2).ceil()),
            Fire(squeezed, expanded) => {
                // The stem's convolution and activation stand before these.
                let name = format!("features.{}", index + 2);
                fire(network, &name, x, squeezed, expanded)
            }
        };
    }
    let x = active(network, "classifier.1", x, Convolution::new(size.classes, 1));
    let x = network.global_average_pool(x);
    let logits = network.flatten(x, 1);
    network.output("output", logits.id, &[batch(), fixed(size.classes)]);
}

fn active(network: &mut Network, name: &str, x: Signal, convolution: Convolution) -> Signal {
    let x = network.convolve(name, x, convolution.bias());
    network.relu(x)
}

fn fire(network: &mut Network, name: &str, x: Signal, squeezed: usize, expanded: usize) -> Signal {
    let x = active(network, &format!("{name}.squeeze"), x, Convolution::new(squeezed, 1));
    let narrow = active(network, &format!("{name}.expand1x1"), x, Convolution::new(expanded, 1));
    let wide = active(network, &format!("{name}.expand3x3"), x, Convolution::new(expanded, 3));
    network.concat(&[narrow, wide])
}
