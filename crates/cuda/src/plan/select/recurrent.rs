//! Recurrent layers with constant weights and the standard's own functions.

use weft_device::DeviceError;
use weft_ir::{Attributes, Tensor};

use crate::Storage;
use crate::kernels::recurrent::{Cell, Direction, Recurrent, RecurrentOperands, by_column};
use crate::kernels::stored::stored;
use crate::launch::Argument;
use crate::plan::site::{Selected, Selection, Site};

pub(super) fn select(site: &Site<'_>) -> Selection {
    let Some((layer, weights)) = layer(site) else { return Ok(None) };
    let mut reads = vec![0];
    let mut optional = |index: usize| match site.has_input(index) {
        true => {
            reads.push(index);
            Argument::Input(index)
        }
        false => Argument::Null,
    };
    let (lengths, first_hidden, first_cell) = (optional(4), optional(5), optional(6));
    let output = |index: usize| match site.output_fact(index) {
        Some(_) => Argument::Output(index),
        None => Argument::Null,
    };
    let rows = layer.cell.gates() * layer.hidden;
    let operands = RecurrentOperands {
        input: Argument::Input(0),
        weights: turned(site, weights.input, rows, layer.features)?,
        recurrence: turned(site, weights.recurrence, rows, layer.hidden)?,
        bias: match weights.bias {
            None => Argument::Null,
            Some(bias) => {
                let bytes = |elements: &[f32]| stored(elements.iter().copied(), Storage::F32);
                Argument::Weights(site.weights.get_or_make(bias, "f32".into(), bytes)?)
            }
        },
        lengths,
        first_hidden,
        first_cell,
        all: output(0),
        last_hidden: output(1),
        last_cell: output(2),
    };
    Ok(Some(Selected::only(layer.candidate(operands), reads)))
}

fn turned(
    site: &Site<'_>,
    tensor: &Tensor,
    rows: usize,
    columns: usize,
) -> Result<Argument, DeviceError> {
    let storage = site.precision.storage();
    let form = format!("recurrent {rows}x{columns} {storage:?}");
    let make = |elements: &[f32]| stored(by_column(elements, rows, columns), storage);
    Ok(Argument::Weights(site.weights.get_or_make(tensor, form, make)?))
}

struct Weights<'a> {
    input: &'a Tensor,
    recurrence: &'a Tensor,
    bias: Option<&'a Tensor>,
}

/// The layer that a node is; `None` where it is none, or one that no kernel computes.
fn layer<'a>(site: &Site<'a>) -> Option<(Recurrent, Weights<'a>)> {
    let attributes = &site.node.origin.as_ref()?.attributes;
    let (cell, functions): (Cell, &[&str]) = match site.node.operator.name() {
        "RNN" => (Cell::Rnn, &["Tanh"]),
        "GRU" => {
            let linear_before_reset = attributes.flag_or("linear_before_reset", false).ok()?;
            (Cell::Gru { linear_before_reset }, &["Sigmoid", "Tanh"])
        }
        "LSTM" => (Cell::Lstm, &["Sigmoid", "Tanh", "Tanh"]),
        _ => return None,
    };
    let direction = match attributes.string_or("direction", "forward").ok()? {
        "reverse" => Direction::Reverse,
        "bidirectional" => Direction::Both,
        _ => Direction::Forward,
    };
    if !is_standard(attributes, functions, direction) || site.has_input(7) {
        return None;
    }
    let (input, recurrence) = (site.f32_constant(1)?, site.f32_constant(2)?);
    let bias = match site.has_input(3) {
        true => Some(site.f32_constant(3)?),
        false => None,
    };
    let (&[first, second, features], &[directions, rows, hidden]) =
        (&site.float_input(0)?[..], recurrence.shape())
    else {
        return None;
    };
    let batch_first = attributes.flag_or("layout", false).ok()?;
    let (steps, sequences) = if batch_first { (second, first) } else { (first, second) };
    let storage = site.precision.storage();
    let layer =
        Recurrent { cell, direction, storage, steps, sequences, features, hidden, batch_first };
    let state = match batch_first {
        true => vec![sequences, directions, hidden],
        false => vec![directions, sequences, hidden],
    };
    let is_state =
        |index: usize| !site.has_input(index) || site.float_input(index) == Some(state.clone());
    let has_lengths =
        |(shape, storage): (Vec<usize>, Storage)| shape == [sequences] && storage == Storage::I32;
    let lengths = site.input_fact(4).map(|fact| site.resident(fact).is_some_and(has_lengths));
    let fits = layer.supports()
        && directions == direction.count()
        && rows == cell.gates() * hidden
        && input.shape() == [directions, rows, features]
        && bias.is_none_or(|bias| bias.shape() == [directions, 2 * rows])
        && lengths != Some(false)
        && is_state(5)
        && is_state(6)
        && (0..site.node.outputs.len()).all(|index| writes_floats(site, index));
    fits.then_some((layer, Weights { input, recurrence, bias }))
}

fn writes_floats(site: &Site<'_>, index: usize) -> bool {
    let Some(fact) = site.output_fact(index) else { return true };
    site.resident(fact).is_some_and(|(_, storage)| storage.is_float())
}

/// True where the layer's functions are the standard's, and nothing is clipped or coupled.
fn is_standard(attributes: &Attributes, functions: &[&str], direction: Direction) -> bool {
    let has_default_functions = match attributes.strings("activations") {
        Ok(None) => true,
        Ok(Some(given)) => {
            let expected = functions.repeat(direction.count());
            given.len() == expected.len()
                && given.iter().zip(expected).all(|(a, b)| a.eq_ignore_ascii_case(b))
        }
        Err(_) => false,
    };
    let is_free = matches!(attributes.float("clip"), Ok(None));
    has_default_functions
        && is_free
        && matches!(attributes.flag_or("input_forget", false), Ok(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;
    use crate::plan::select::testing::{OneNode, Operand, given};
    use weft_ir::DataType;

    fn selected(operator: &str, gates: usize, attributes: Attributes) -> Option<Selected> {
        let constant = |shape: &[usize]| {
            let count = shape.iter().product();
            Operand::Constant(Tensor::from_vec(shape.to_vec(), vec![0.5f32; count]).unwrap())
        };
        let operands = vec![
            given(&[4, 2, 6]),
            constant(&[1, gates * 5, 6]),
            constant(&[1, gates * 5, 5]),
            constant(&[1, 2 * gates * 5]),
            Operand::Given(DataType::I32, vec![2]),
            given(&[1, 2, 5]),
        ];
        let node = OneNode::with_outputs(operator, operands, 2, attributes);
        select(&node.site(Precision::F16)).unwrap()
    }

    #[test]
    fn layers_read_what_they_are_given() {
        for (operator, gates) in [("RNN", 1), ("GRU", 3), ("LSTM", 4)] {
            let selected = selected(operator, gates, Attributes::new()).unwrap();
            assert_eq!(selected.reads, [0, 4, 5]);
            assert_eq!(selected.candidates[0].launches.len(), 2);
        }
    }

    #[test]
    fn functions_of_ones_own_are_left_to_the_host() {
        let names = |names: [&str; 3]| {
            Attributes::new().with("activations", names.map(String::from).to_vec())
        };
        assert!(selected("LSTM", 4, names(["sigmoid", "tanh", "tanh"])).is_some());
        assert!(selected("LSTM", 4, names(["sigmoid", "relu", "tanh"])).is_none());
        assert!(selected("LSTM", 4, Attributes::new().with("clip", 1f32)).is_none());
        assert!(selected("LSTM", 4, Attributes::new().with("input_forget", 1i64)).is_none());
    }
}
