//! GPT-2 without a cache: a decoder that reads the whole sentence and scores the next word at every place.

use weft_ir::{Attributes, ValueId};

use crate::entry::{Entry, Takes};
use crate::layers::{Extent, unit_spread};
use crate::network::{Network, Signal, batch, fixed, sequence};
use crate::weights::Spread;

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "tiny_gpt2",
    family: "gpt2",
    takes: Takes::Tokens { names: &["input_ids"], vocabulary: VOCABULARY, longest: POSITIONS },
    parameters: 168_192,
    assemble,
}];

const VOCABULARY: usize = 1000;
const POSITIONS: usize = 64;
const HIDDEN: usize = 64;
const LAYERS: usize = 2;
const HEADS: usize = 4;
const EPSILON: f32 = 1e-5;

/// The score of words that lie ahead: low enough to silence them, and still a number in f16.
const SILENCE: f32 = -10000.0;

/// The mean square of a mean over values weighted by attention.
const ATTENDED: f32 = 0.3;

/// The scale of residual branches, so that their sum grows slowly.
const BRANCH_GAIN: f32 = 0.5;

/// Values that every layer reads.
struct Shared {
    batch: Extent,
    length: ValueId,
    mask: ValueId,
}

fn assemble(network: &mut Network) {
    let ids = network.input(0).id;
    let shared = Shared {
        batch: Extent::Computed(network.extent(ids, 0)),
        length: network.extent(ids, 1),
        mask: causal_mask(network),
    };
    let words = network.parameter(
        "wte.weight",
        &[VOCABULARY, HIDDEN],
        // The same table scores words at the end, so its spread has to suit a product too.
        unit_spread(HIDDEN as f32, 1.0),
    );
    let mut x = embed(network, ids, words, &shared);
    for layer in 0..LAYERS {
        let name = format!("h.{layer}");
        let normalised = network.layer_norm(&format!("{name}.ln_1"), x, EPSILON);
        let attended = attention(network, &format!("{name}.attn"), normalised, &shared);
        x = network.add(attended, x);
        let normalised = network.layer_norm(&format!("{name}.ln_2"), x, EPSILON);
        let inner = flat_project(
            network,
            &format!("{name}.mlp.c_fc"),
            normalised,
            4 * HIDDEN,
            1.0,
            &shared,
        );
        let inner = network.gelu_tanh(inner);
        let name = format!("{name}.mlp.c_proj");
        let fed = flat_project(network, &name, inner, HIDDEN, BRANCH_GAIN, &shared);
        x = network.add(x, fed);
    }
    let x = network.layer_norm("ln_f", x, EPSILON);
    let scores = network.transpose(words, &[1, 0]);
    let logits = network.op("MatMul", &[x.id, scores]);
    network.output("output", logits, &[batch(), sequence(), fixed(VOCABULARY)]);
}

/// True where a word (row) may look at another (column), for sentences of full length.
fn causal_mask(network: &mut Network) -> ValueId {
    let seen = (0..POSITIONS).flat_map(|row| (0..POSITIONS).map(move |column| column <= row));
    network.tensor("attn.bias", &[1, 1, POSITIONS, POSITIONS], seen.collect())
}

fn embed(network: &mut Network, ids: ValueId, words: ValueId, shared: &Shared) -> Signal {
    let rows = || Attributes::new().with("axis", 0i64);
    let all = network.tensor("position_ids", &[1, POSITIONS], (0..POSITIONS as i64).collect());
    let places = network.slice(all, 1, 0, shared.length);
    let positions = network.parameter("wpe.weight", &[POSITIONS, HIDDEN], Spread::Normal(0.1));
    let words = network.op_with("Gather", &[words, ids], rows());
    let positions = network.op_with("Gather", &[positions, places], rows());
    let id = network.op("Add", &[words, positions]);
    Signal { id, channels: HIDDEN, energy: 0.03 }
}

/// A layer on the last axis, written as `Gemm` between two reshapes, the way GPT-2's own layer is exported.
fn flat_project(
    network: &mut Network,
    name: &str,
    x: Signal,
    outputs: usize,
    gain: f32,
    shared: &Shared,
) -> Signal {
    let rows = network.reshape(x.id, &[-1, x.channels as i64]);
    let spread = unit_spread(x.channels as f32, x.energy / (gain * gain));
    let weight = network.parameter(&format!("{name}.weight"), &[x.channels, outputs], spread);
    let bias = network.parameter(&format!("{name}.bias"), &[outputs], Spread::Normal(0.1 * gain));
    let attributes = Attributes::new().with("alpha", 1f32).with("beta", 1f32);
    let product = network.op_with("Gemm", &[rows, weight, bias], attributes);
    let shape = [shared.batch, Extent::Computed(shared.length), Extent::Fixed(outputs as i64)];
    let shape = network.shape_of(&shape);
    let id = network.op("Reshape", &[product, shape]);
    Signal { id, channels: outputs, energy: gain * gain }
}

fn attention(network: &mut Network, name: &str, x: Signal, shared: &Shared) -> Signal {
    let width = HIDDEN / HEADS;
    let all = flat_project(network, &format!("{name}.c_attn"), x, 3 * HIDDEN, 1.0, shared);
    let parts = network.split(all.id, 2, &[HIDDEN as i64; 3]);
    let heads = [
        shared.batch,
        Extent::Computed(shared.length),
        Extent::Fixed(HEADS as i64),
        Extent::Fixed(width as i64),
    ];
    let mut split = |part: ValueId, permutation: [i64; 4]| {
        let shape = network.shape_of(&heads);
        let part = network.op("Reshape", &[part, shape]);
        network.transpose(part, &permutation)
    };
    let query = split(parts[0], [0, 2, 1, 3]);
    let key = split(parts[1], [0, 2, 3, 1]);
    let value = split(parts[2], [0, 2, 1, 3]);
    let scores = network.op("MatMul", &[query, key]);
    let root = network.scalar((width as f32).sqrt());
    let scores = network.op("Div", &[scores, root]);
    let mask = network.slice(shared.mask, 2, 0, shared.length);
    let mask = network.slice(mask, 3, 0, shared.length);
    let silence = network.scalar(SILENCE);
    let scores = network.op("Where", &[mask, scores, silence]);
    let shares = network.softmax(scores);
    let mixed = network.op("MatMul", &[shares, value]);
    let mixed = network.transpose(mixed, &[0, 2, 1, 3]);
    let shape = [shared.batch, Extent::Computed(shared.length), Extent::Fixed(HIDDEN as i64)];
    let shape = network.shape_of(&shape);
    let joined = network.op("Reshape", &[mixed, shape]);
    let attended = x.then(joined, ATTENDED);
    flat_project(network, &format!("{name}.c_proj"), attended, HIDDEN, BRANCH_GAIN, shared)
}
