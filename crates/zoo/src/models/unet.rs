//! U-Net: a contracting path, an expanding one, and connections across.

use crate::entry::{Entry, Takes};
use crate::layers::{Convolution, Window};
use crate::network::{Network, Signal, batch, fixed};

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "tiny_unet",
    family: "unet",
    takes: Takes::Images { side: SIDE, smallest: None },
    parameters: 29_250,
    assemble,
}];

const SIDE: usize = 32;
const CHANNELS: [usize; 3] = [8, 16, 32];
const CLASSES: usize = 2;
const EPSILON: f32 = 1e-5;

fn assemble(network: &mut Network) {
    let [high, middle, low] = CHANNELS;
    let x = network.input(0);
    let top = double(network, "down0", x, high);
    let x = network.max_pool(top, Window::new(2, 2));
    let side = double(network, "down1", x, middle);
    let x = network.max_pool(side, Window::new(2, 2));
    let x = double(network, "down2", x, low);
    // One step up learns how to enlarge, the other repeats pixels: both are common.
    let x = network.enlarge("up1.transpose", x, middle, 2);
    let x = network.concat(&[side, x]);
    let x = double(network, "up1", x, middle);
    let x = network.upsample(x);
    let x = network.convolve("up0.reduce", x, Convolution::new(high, 1).bias());
    let x = network.concat(&[top, x]);
    let x = double(network, "up0", x, high);
    let logits = network.convolve("out", x, Convolution::new(CLASSES, 1).bias());
    network.output("output", logits.id, &[batch(), fixed(CLASSES), fixed(SIDE), fixed(SIDE)]);
}

fn double(network: &mut Network, name: &str, x: Signal, channels: usize) -> Signal {
    let mut x = x;
    for index in 0..2 {
        x = network.convolve(&format!("{name}.conv{index}"), x, Convolution::new(channels, 3));
        x = network.batch_norm(&format!("{name}.bn{index}"), x, EPSILON, 1.0);
        x = network.relu(x);
    }
    x
}
