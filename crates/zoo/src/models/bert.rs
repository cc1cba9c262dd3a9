//! BERT and MiniLM: encoders with normalisation after each step, every shape computed in the graph.

use weft_ir::{Attributes, ValueId};

use crate::entry::{Entry, Takes};
use crate::layers::Extent;
use crate::network::{Network, Signal, batch, fixed, sequence};
use crate::weights::Spread;

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "bert_base",
        family: "bert",
        takes: BERT_BASE.takes(),
        parameters: 109_482_240,
        assemble: |network| assemble(network, &BERT_BASE),
    },
    Entry {
        name: "bert_small",
        family: "bert",
        takes: BERT_SMALL.takes(),
        parameters: 28_763_648,
        assemble: |network| assemble(network, &BERT_SMALL),
    },
    Entry {
        name: "minilm_l6",
        family: "bert",
        takes: MINILM_L6.takes(),
        parameters: 22_713_216,
        assemble: |network| assemble(network, &MINILM_L6),
    },
    Entry {
        name: "tiny_bert",
        family: "bert",
        takes: TINY.takes(),
        parameters: 139_456,
        assemble: |network| assemble(network, &TINY),
    },
];

const INPUTS: &[&str] = &["input_ids", "attention_mask", "token_type_ids"];

struct Size {
    vocabulary: usize,
    positions: usize,
    hidden: usize,
    layers: usize,
    heads: usize,
    inner: usize,
}

impl Size {
    const fn takes(&self) -> Takes {
        Takes::Tokens { names: INPUTS, vocabulary: self.vocabulary, longest: self.positions }
    }
}

const BERT_BASE: Size =
    Size { vocabulary: 30522, positions: 512, hidden: 768, layers: 12, heads: 12, inner: 3072 };
const BERT_SMALL: Size =
    Size { vocabulary: 30522, positions: 512, hidden: 512, layers: 4, heads: 8, inner: 2048 };
const MINILM_L6: Size =
    Size { vocabulary: 30522, positions: 512, hidden: 384, layers: 6, heads: 12, inner: 1536 };
const TINY: Size =
    Size { vocabulary: 1000, positions: 64, hidden: 64, layers: 2, heads: 4, inner: 128 };

const EPSILON: f32 = 1e-12;

/// What is added to the scores of padding: enough to silence it, and still a number in f16.
const SILENCE: f32 = -10000.0;

/// The mean square of a mean over values weighted by attention.
const ATTENDED: f32 = 0.3;

fn assemble(network: &mut Network, size: &Size) {
    let mask = silence_padding(network);
    let mut x = embed(network, size);
    for layer in 0..size.layers {
        let name = format!("encoder.layer.{layer}");
        let attended = attention(network, &format!("{name}.attention"), x, mask, size.heads);
        let sum = network.add(attended, x);
        let norm = format!("{name}.attention.output.LayerNorm");
        x = network.layer_norm_primitives(&norm, sum, EPSILON);
        let inner = network.project(&format!("{name}.intermediate.dense"), x, size.inner, 1.0);
        let inner = network.gelu(inner);
        let fed = network.project(&format!("{name}.output.dense"), inner, size.hidden, 1.0);
        let sum = network.add(fed, x);
        x = network.layer_norm_primitives(&format!("{name}.output.LayerNorm"), sum, EPSILON);
    }
    let first = network.scalar(0i64);
    let first = network.op_with("Gather", &[x.id, first], Attributes::new().with("axis", 1i64));
    let pooled = network.classify("pooler.dense", x.then(first, 1.0), size.hidden);
    let pooled = network.op("Tanh", &[pooled.id]);
    network.output("last_hidden_state", x.id, &[batch(), sequence(), fixed(size.hidden)]);
    network.output("pooler_output", pooled, &[batch(), fixed(size.hidden)]);
}

/// What attention adds to its scores: zero for words, [`SILENCE`] for padding, `[batch, 1, 1, sequence]`.
fn silence_padding(network: &mut Network) -> ValueId {
    let mask = network.input(1).id;
    let mask = network.unsqueeze(mask, 1);
    let mask = network.unsqueeze(mask, 2);
    // 1 is f32 in the standard's numbering of types.
    let mask = network.op_with("Cast", &[mask], Attributes::new().with("to", 1i64));
    let one = network.scalar(1f32);
    let padding = network.op("Sub", &[one, mask]);
    let silence = network.scalar(SILENCE);
    network.op("Mul", &[padding, silence])
}

fn embed(network: &mut Network, size: &Size) -> Signal {
    let ids = network.input(0).id;
    let length = network.extent(ids, 1);
    let all = (0..size.positions as i64).collect();
    let positions = network.tensor("embeddings.position_ids", &[1, size.positions], all);
    let positions = network.slice(positions, 1, 0, length);
    let types = network.input(2).id;
    let words = lookup(network, "word", size.vocabulary, size.hidden, ids);
    let types = lookup(network, "token_type", 2, size.hidden, types);
    let positions = lookup(network, "position", size.positions, size.hidden, positions);
    let sum = network.op("Add", &[words, types]);
    let id = network.op("Add", &[sum, positions]);
    let sum = Signal { id, channels: size.hidden, energy: 1.0 };
    network.layer_norm_primitives("embeddings.LayerNorm", sum, EPSILON)
}

fn lookup(network: &mut Network, kind: &str, rows: usize, columns: usize, ids: ValueId) -> ValueId {
    let name = format!("embeddings.{kind}_embeddings.weight");
    let table = network.parameter(&name, &[rows, columns], Spread::Normal(0.5));
    network.op_with("Gather", &[table, ids], Attributes::new().with("axis", 0i64))
}

fn attention(network: &mut Network, name: &str, x: Signal, mask: ValueId, heads: usize) -> Signal {
    let mut part = |name: String, permutation: [i64; 4]| {
        let part = network.project(&name, x, x.channels, 1.0);
        split_heads(network, part, heads, permutation)
    };
    let query = part(format!("{name}.self.query"), [0, 2, 1, 3]);
    let key = part(format!("{name}.self.key"), [0, 2, 3, 1]);
    let value = part(format!("{name}.self.value"), [0, 2, 1, 3]);
    let scores = network.op("MatMul", &[query, key]);
    let root = network.scalar(((x.channels / heads) as f32).sqrt());
    let scores = network.op("Div", &[scores, root]);
    let scores = network.op("Add", &[scores, mask]);
    let shares = network.softmax(scores);
    let mixed = network.op("MatMul", &[shares, value]);
    let mixed = network.transpose(mixed, &[0, 2, 1, 3]);
    let shape = [
        Extent::Computed(network.extent(mixed, 0)),
        Extent::Computed(network.extent(mixed, 1)),
        Extent::Fixed(x.channels as i64),
    ];
    let shape = network.shape_of(&shape);
    let joined = network.op("Reshape", &[mixed, shape]);
    network.project(&format!("{name}.output.dense"), x.then(joined, ATTENDED), x.channels, 1.0)
}

fn split_heads(network: &mut Network, x: Signal, heads: usize, permutation: [i64; 4]) -> ValueId {
    let shape = [
        Extent::Computed(network.extent(x.id, 0)),
        Extent::Computed(network.extent(x.id, 1)),
        Extent::Fixed(heads as i64),
        Extent::Fixed((x.channels / heads) as i64),
    ];
    let shape = network.shape_of(&shape);
    let split = network.op("Reshape", &[x.id, shape]);
    network.transpose(split, &permutation)
}
