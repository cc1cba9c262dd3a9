//! ShuffleNet V2: half of the channels pass through, and a shuffle mixes the halves.

use crate::entry::{Entry, Takes};
use crate::layers::{Convolution, Window};
use crate::models::{CLASSES, TINY_CLASSES};
use crate::network::{Network, Signal, batch, fixed};

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "shufflenet_v2_x1_0",
        family: "shufflenet",
        takes: Takes::Images { side: SHUFFLENET_V2_X1_0.side, smallest: None },
        parameters: 2_278_604,
        assemble: |network| assemble(network, &SHUFFLENET_V2_X1_0),
    },
    Entry {
        name: "tiny_shufflenet",
        family: "shufflenet",
        takes: Takes::Images { side: TINY.side, smallest: None },
        parameters: 10_858,
        assemble: |network| assemble(network, &TINY),
    },
];

struct Size {
    side: usize,
    stem: usize,
    /// Channels and number of blocks of each stage.
    stages: &'static [(usize, usize)],
    head: usize,
    classes: usize,
}

const SHUFFLENET_V2_X1_0: Size = Size {
    side: 224,
    stem: 24,
    stages: &[(116, 4), (232, 8), (464, 4)],
    head: 1024,
    classes: CLASSES,
};
const TINY: Size =
    Size { side: 32, stem: 12, stages: &[(24, 2), (48, 3)], head: 64, classes: TINY_CLASSES };

const EPSILON: f32 = 1e-5;

fn assemble(network: &mut Network, size: &Size) {
    let x = network.input(0);
    let x = normalised(network, "conv1", x, Convolution::new(size.stem, 3).stride(2));
    let x = network.relu(x);
    let mut x = network.max_pool(x, Window::new(3, 2).padding(1));
    let mut side = size.side / 4;
    for (stage, &(channels, blocks)) in size.stages.iter().enumerate() {
        side /= 2;
        for index in 0..blocks {
            let name = format!("stage{}.{index}", stage + 2);
            let parts = if index == 0 {
                halving(network, &name, x, channels / 2)
            } else {
                keeping(network, &name, x)
            };
            let joined = network.concat(&parts);
            x = shuffle(network, joined, side);
        }
    }
    let x = normalised(network, "conv5", x, Convolution::new(size.head, 1));
    let x = network.relu(x);
    let x = network.mean_over_pixels(x, false);
    let logits = network.classify("fc", x, size.classes);
    network.output("output", logits.id, &[batch(), fixed(size.classes)]);
}

fn normalised(network: &mut Network, name: &str, x: Signal, convolution: Convolution) -> Signal {
    let x = network.convolve(&format!("{name}.0"), x, convolution);
    network.batch_norm(&format!("{name}.1"), x, EPSILON, 1.0)
}

fn halving(network: &mut Network, name: &str, x: Signal, channels: usize) -> [Signal; 2] {
    let depthwise = Convolution::depthwise(x.channels, 3).stride(2);
    let short = normalised(network, &format!("{name}.branch1.0"), x, depthwise);
    let short =
        normalised(network, &format!("{name}.branch1.2"), short, Convolution::new(channels, 1));
    [network.relu(short), branch(network, name, x, channels, 2)]
}

fn keeping(network: &mut Network, name: &str, x: Signal) -> [Signal; 2] {
    let channels = x.channels / 2;
    let halves = network.split(x.id, 1, &[channels as i64; 2]);
    let [kept, worked] = [halves[0], halves[1]].map(|id| Signal { id, channels, energy: x.energy });
    [kept, branch(network, name, worked, channels, 1)]
}

fn branch(network: &mut Network, name: &str, x: Signal, channels: usize, stride: usize) -> Signal {
    let name = format!("{name}.branch2");
    let x = normalised(network, &format!("{name}.0"), x, Convolution::new(channels, 1));
    let x = network.relu(x);
    let depthwise = Convolution::depthwise(channels, 3).stride(stride);
    let x = normalised(network, &format!("{name}.3"), x, depthwise);
    let x = normalised(network, &format!("{name}.5"), x, Convolution::new(channels, 1));
    network.relu(x)
}

/// Channels of the two halves taken in turn.
fn shuffle(network: &mut Network, x: Signal, side: usize) -> Signal {
    let (half, side) = (x.channels as i64 / 2, side as i64);
    let grouped = network.reshape(x.id, &[-1, 2, half, side, side]);
    let swapped = network.transpose(grouped, &[0, 2, 1, 3, 4]);
    x.then(network.reshape(swapped, &[-1, 2 * half, side, side]), x.energy)
}
