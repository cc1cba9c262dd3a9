//! LSTM and GRU classifiers of time series: a layer that reads both ways, one that reads forward, and the last step's verdict.

use weft_ir::{Attribute, Attributes, ValueId};

use crate::entry::{Entry, Takes};
use crate::layers::Extent;
use crate::models::TINY_CLASSES;
use crate::network::{Network, Signal, batch, fixed};
use crate::weights::Spread;

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "tiny_lstm",
        family: "lstm",
        takes: Takes::Series { features: FEATURES },
        parameters: 25_674,
        assemble: |network| assemble(network, Cell::Lstm),
    },
    Entry {
        name: "tiny_gru",
        family: "gru",
        takes: Takes::Series { features: FEATURES },
        parameters: 19_338,
        assemble: |network| assemble(network, Cell::Gru),
    },
];

const FEATURES: usize = 16;
const HIDDEN: usize = 32;

#[derive(Clone, Copy)]
enum Cell {
    Lstm,
    Gru,
}

impl Cell {
    fn operator(self) -> &'static str {
        match self {
            Cell::Lstm => "LSTM",
            Cell::Gru => "GRU",
        }
    }

    fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
        }
    }
}

fn assemble(network: &mut Network, cell: Cell) {
    let input = network.input(0);
    let steps_first = network.transpose(input.id, &[1, 0, 2]);
    let x = input.then(steps_first, 1.0);
    let x = layer(network, "rnn.l0", cell, x, 2);
    let x = layer(network, "rnn.l1", cell, x, 1);
    let last = network.scalar(-1i64);
    let last = network.op_with("Gather", &[x.id, last], Attributes::new().with("axis", 0i64));
    let logits = network.classify("fc", x.then(last, x.energy), TINY_CLASSES);
    network.output("output", logits.id, &[batch(), fixed(TINY_CLASSES)]);
}

/// One layer on `[sequence, batch, channels]`, read in one or two directions, which then stand side by side.
fn layer(network: &mut Network, name: &str, cell: Cell, x: Signal, directions: usize) -> Signal {
    let rows = cell.gates() * HIDDEN;
    // Wider than frameworks draw them, since states that are not trained hardly move otherwise.
    let reach = (4.0 / HIDDEN as f32).sqrt();
    let mut weight = |kind: &str, shape: &[usize]| {
        Some(network.parameter(&format!("{name}.{kind}"), shape, Spread::Uniform(-reach, reach)))
    };
    let weights = [
        weight("weight_ih", &[directions, rows, x.channels]),
        weight("weight_hh", &[directions, rows, HIDDEN]),
        weight("bias", &[directions, 2 * rows]),
    ];
    let start = Some(zeros(network, x.id, directions));
    let mut inputs = vec![Some(x.id)];
    inputs.extend(weights);
    inputs.extend([None, start]);
    let mut attributes = Attributes::new().with("hidden_size", HIDDEN as i64);
    let direction = if directions == 2 { "bidirectional" } else { "forward" };
    attributes.insert("direction", Attribute::from(direction));
    match cell {
        Cell::Lstm => inputs.push(start),
        Cell::Gru => attributes.insert("linear_before_reset", Attribute::from(1i64)),
    }
    let steps = network.op_outputs(cell.operator(), &inputs, 1, attributes)[0];
    let id = if directions == 1 {
        let axes = network.list(&[1i64]);
        network.op("Squeeze", &[steps, axes])
    } else {
        let beside = network.transpose(steps, &[0, 2, 1, 3]);
        network.reshape(beside, &[0, 0, -1])
    };
    Signal { id, channels: directions * HIDDEN, energy: 0.1 }
}

/// The state before the first step: `[directions, batch, hidden]`.
fn zeros(network: &mut Network, x: ValueId, directions: usize) -> ValueId {
    let shape = [
        Extent::Fixed(directions as i64),
        Extent::Computed(network.extent(x, 1)),
        Extent::Fixed(HIDDEN as i64),
    ];
    let shape = network.shape_of(&shape);
    network.op("ConstantOfShape", &[shape])
}
