//! Vision transformers: patches as words, normalisation before each step.

use weft_ir::{Attributes, ValueId};

use crate::entry::{Entry, Takes};
use crate::layers::{Convolution, Extent};
use crate::models::{CLASSES, TINY_CLASSES};
use crate::network::{Network, Signal, batch, fixed};
use crate::weights::Spread;

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "vit_b_16",
        family: "vit",
        takes: Takes::Images { side: 224, smallest: None },
        parameters: 86_567_656,
        assemble: |network| assemble(network, &VIT_B_16),
    },
    Entry {
        name: "deit_tiny",
        family: "vit",
        takes: Takes::Images { side: 224, smallest: None },
        parameters: 5_717_416,
        assemble: |network| assemble(network, &DEIT_TINY),
    },
    Entry {
        name: "tiny_vit",
        family: "vit",
        takes: Takes::Images { side: 32, smallest: None },
        parameters: 48_634,
        assemble: |network| assemble(network, &TINY),
    },
];

struct Size {
    patch: usize,
    /// Patches of an image.
    patches: usize,
    hidden: usize,
    layers: usize,
    heads: usize,
    inner: usize,
    classes: usize,
}

const VIT_B_16: Size = Size {
    patch: 16,
    patches: 196,
    hidden: 768,
    layers: 12,
    heads: 12,
    inner: 3072,
    classes: CLASSES,
};
const DEIT_TINY: Size = Size {
    patch: 16,
    patches: 196,
    hidden: 192,
    layers: 12,
    heads: 3,
    inner: 768,
    classes: CLASSES,
};
const TINY: Size = Size {
    patch: 8,
    patches: 16,
    hidden: 48,
    layers: 2,
    heads: 3,
    inner: 96,
    classes: TINY_CLASSES,
};

const EPSILON: f32 = 1e-6;

/// The scale of residual branches, so that their sum grows slowly.
const BRANCH_GAIN: f32 = 0.5;

/// The mean square of a mean over values weighted by attention.
const ATTENDED: f32 = 0.3;

fn assemble(network: &mut Network, size: &Size) {
    let mut x = embed(network, size);
    for layer in 0..size.layers {
        let name = format!("encoder.layers.encoder_layer_{layer}");
        let normalised = network.layer_norm(&format!("{name}.ln_1"), x, EPSILON);
        let attended =
            attention(network, &format!("{name}.self_attention"), normalised, size.heads);
        x = network.add(attended, x);
        let normalised = network.layer_norm(&format!("{name}.ln_2"), x, EPSILON);
        let inner = network.project(&format!("{name}.mlp.0"), normalised, size.inner, 1.0);
        let inner = network.gelu(inner);
        let fed = network.project(&format!("{name}.mlp.3"), inner, size.hidden, BRANCH_GAIN);
        x = network.add(x, fed);
    }
    let x = network.layer_norm("encoder.ln", x, EPSILON);
    let first = network.scalar(0i64);
    let first = network.op_with("Gather", &[x.id, first], Attributes::new().with("axis", 1i64));
    let logits = network.classify("heads.head", x.then(first, 1.0), size.classes);
    network.output("output", logits.id, &[batch(), fixed(size.classes)]);
}

/// The patches behind a learnt word that gathers what the classifier reads.
fn embed(network: &mut Network, size: &Size) -> Signal {
    let image = network.input(0);
    let cut = Convolution::new(size.hidden, size.patch).stride(size.patch).padding(0).bias();
    let patches = network.convolve("conv_proj", image, cut);
    let flat = network.reshape(patches.id, &[0, size.hidden as i64, -1]);
    let words = network.transpose(flat, &[0, 2, 1]);
    let class = network.parameter("class_token", &[1, 1, size.hidden], Spread::Normal(1.0));
    let shape = [Extent::Computed(network.extent(words, 0)), Extent::Fixed(1), Extent::Fixed(1)];
    let shape = network.shape_of(&shape);
    let class = network.op("Expand", &[class, shape]);
    let all = network.op_with("Concat", &[class, words], Attributes::new().with("axis", 1i64));
    let positions = network.parameter(
        "encoder.pos_embedding",
        &[1, size.patches + 1, size.hidden],
        Spread::Normal(0.3),
    );
    patches.then(network.op("Add", &[all, positions]), 1.0)
}

/// Attention with queries, keys and values out of one product.
fn attention(network: &mut Network, name: &str, x: Signal, heads: usize) -> Signal {
    let (hidden, width) = (x.channels as i64, x.channels / heads);
    let all = network.project(&format!("{name}.in_proj"), x, 3 * x.channels, 1.0);
    let parts = network.split(all.id, 2, &[hidden; 3]);
    let mut split = |part: ValueId, permutation: [i64; 4]| {
        let part = network.reshape(part, &[0, -1, heads as i64, width as i64]);
        network.transpose(part, &permutation)
    };
    let query = split(parts[0], [0, 2, 1, 3]);
    let key = split(parts[1], [0, 2, 3, 1]);
    let value = split(parts[2], [0, 2, 1, 3]);
    let scale = network.scalar(1.0 / (width as f32).sqrt());
    let query = network.op("Mul", &[query, scale]);
    let scores = network.op("MatMul", &[query, key]);
    let shares = network.softmax(scores);
    let mixed = network.op("MatMul", &[shares, value]);
    let mixed = network.transpose(mixed, &[0, 2, 1, 3]);
    let joined = network.reshape(mixed, &[0, -1, hidden]);
    let attended = x.then(joined, ATTENDED);
    network.project(&format!("{name}.out_proj"), attended, x.channels, BRANCH_GAIN)
}
