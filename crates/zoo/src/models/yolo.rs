//! A detector in the manner of YOLO V5: cross-stage blocks, a pyramid of two scales, and boxes decoded in the graph.

use weft_ir::{Attributes, ValueId};

use crate::entry::{Entry, Takes};
use crate::layers::{Convolution, Window};
use crate::network::{Network, Signal, batch, fixed};

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "tiny_yolo",
    family: "yolo",
    takes: Takes::Images { side: SIDE, smallest: None },
    parameters: 99_270,
    assemble,
}];

const SIDE: usize = 64;
const CLASSES: usize = 4;
/// What is said of each box: its place, its size, whether it is one, and of which class.
const FIELDS: usize = 5 + CLASSES;
const ANCHORS: usize = 3;
const SCALES: [Scale; 2] = [
    Scale { stride: 8, anchors: [4.0, 5.0, 8.0, 10.0, 13.0, 9.0] },
    Scale { stride: 16, anchors: [16.0, 20.0, 30.0, 24.0, 28.0, 40.0] },
];
const EPSILON: f32 = 1e-3;

/// The scale of residual branches, so that their sum grows slowly.
const BRANCH_GAIN: f32 = 0.5;

struct Scale {
    /// Pixels of the image per cell.
    stride: usize,
    /// Widths and heights of the boxes that a cell starts from, in pixels.
    anchors: [f32; 2 * ANCHORS],
}

fn assemble(network: &mut Network) {
    let x = network.input(0);
    let x = active(network, "model.0", x, Convolution::new(8, 6).stride(2).padding(2), 1.0);
    let x = active(network, "model.1", x, Convolution::new(16, 3).stride(2), 1.0);
    let x = cross_stage(network, "model.2", x, 16, true);
    let x = active(network, "model.3", x, Convolution::new(32, 3).stride(2), 1.0);
    let fine = cross_stage(network, "model.4", x, 32, true);
    let x = active(network, "model.5", fine, Convolution::new(64, 3).stride(2), 1.0);
    let x = cross_stage(network, "model.6", x, 64, true);
    let x = pyramid_pool(network, "model.7", x);
    let coarse = active(network, "model.8", x, Convolution::new(32, 1), 1.0);
    let x = network.upsample(coarse);
    let x = network.concat(&[x, fine]);
    let fine = cross_stage(network, "model.11", x, 32, false);
    let x = active(network, "model.12", fine, Convolution::new(32, 3).stride(2), 1.0);
    let x = network.concat(&[x, coarse]);
    let coarse = cross_stage(network, "model.14", x, 64, false);

    let found: Vec<ValueId> = [fine, coarse]
        .iter()
        .zip(&SCALES)
        .enumerate()
        .map(|(index, (&x, scale))| detect(network, index, x, scale))
        .collect();
    let boxes = network.op_with("Concat", &found, Attributes::new().with("axis", 1i64));
    let count = SCALES.iter().map(|scale| ANCHORS * (SIDE / scale.stride).pow(2)).sum();
    network.output("output", boxes, &[batch(), fixed(count), fixed(FIELDS)]);
}

fn active(
    network: &mut Network,
    name: &str,
    x: Signal,
    convolution: Convolution,
    gain: f32,
) -> Signal {
    let x = network.convolve(&format!("{name}.conv"), x, convolution);
    let x = network.batch_norm(&format!("{name}.bn"), x, EPSILON, gain);
    network.silu(x)
}

/// Half of the channels pass a bottleneck, half go around it.
fn cross_stage(
    network: &mut Network,
    name: &str,
    x: Signal,
    channels: usize,
    residual: bool,
) -> Signal {
    let half = channels / 2;
    let entered = active(network, &format!("{name}.cv1"), x, Convolution::new(half, 1), 1.0);
    let inner =
        active(network, &format!("{name}.m.0.cv1"), entered, Convolution::new(half, 1), 1.0);
    let gain = if residual { BRANCH_GAIN } else { 1.0 };
    let inner = active(network, &format!("{name}.m.0.cv2"), inner, Convolution::new(half, 3), gain);
    let worked = if residual { network.add(entered, inner) } else { inner };
    let around = active(network, &format!("{name}.cv2"), x, Convolution::new(half, 1), 1.0);
    let joined = network.concat(&[worked, around]);
    active(network, &format!("{name}.cv3"), joined, Convolution::new(channels, 1), 1.0)
}

/// Pools of growing reach side by side.
fn pyramid_pool(network: &mut Network, name: &str, x: Signal) -> Signal {
    let half = Convolution::new(x.channels / 2, 1);
    let mut parts = vec![active(network, &format!("{name}.cv1"), x, half, 1.0)];
    for _ in 0..3 {
        let last = parts[parts.len() - 1];
        parts.push(network.max_pool(last, Window::new(5, 1).padding(2)));
    }
    let joined = network.concat(&parts);
    active(network, &format!("{name}.cv2"), joined, Convolution::new(x.channels, 1), 1.0)
}

/// The boxes of one scale, in pixels: `[batch, boxes, fields]`.
fn detect(network: &mut Network, index: usize, x: Signal, scale: &Scale) -> ValueId {
    let (cells, fields) = ((SIDE / scale.stride) as i64, FIELDS as i64);
    let head = Convolution::new(ANCHORS * FIELDS, 1).bias();
    let raw = network.convolve(&format!("model.15.m.{index}"), x, head);
    let raw = network.reshape(raw.id, &[-1, ANCHORS as i64, fields, cells, cells]);
    let raw = network.transpose(raw, &[0, 1, 3, 4, 2]);
    let raw = network.sigmoid(raw);
    let parts = network.split(raw, 4, &[2, 2, fields - 4]);

    let two = network.scalar(2f32);
    let doubled = network.op("Mul", &[parts[0], two]);
    let corners = corners(network, index, cells as usize);
    let moved = network.op("Add", &[doubled, corners]);
    let stride = network.scalar(scale.stride as f32);
    let centre = network.op("Mul", &[moved, stride]);

    let two = network.scalar(2f32);
    let doubled = network.op("Mul", &[parts[1], two]);
    let two = network.scalar(2f32);
    let squared = network.op("Pow", &[doubled, two]);
    let anchors = network.tensor(
        &format!("model.15.anchors.{index}"),
        &[1, ANCHORS, 1, 1, 2],
        scale.anchors.to_vec(),
    );
    let size = network.op("Mul", &[squared, anchors]);

    let last_axis = Attributes::new().with("axis", -1i64);
    let boxes = network.op_with("Concat", &[centre, size, parts[2]], last_axis);
    network.reshape(boxes, &[-1, ANCHORS as i64 * cells * cells, fields])
}

/// Where each cell starts, in cells, half a cell early.
fn corners(network: &mut Network, index: usize, cells: usize) -> ValueId {
    let elements = (0..cells * cells)
        .flat_map(|cell| [(cell % cells) as f32 - 0.5, (cell / cells) as f32 - 0.5])
        .collect();
    network.tensor(&format!("model.15.grid.{index}"), &[1, 1, cells, cells, 2], elements)
}
