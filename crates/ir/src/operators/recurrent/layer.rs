//! What RNN, GRU and LSTM share: their attributes, their shapes, and the walk over directions, sequences and steps.

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource};
use crate::operators::dot::dot;
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

use super::activation::{Activation, parse_activations};

/// Attributes common to all recurrent layers.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    /// For each direction, whether it walks from the end.
    reversed: Vec<bool>,
    batch_first: bool,
    clip: Option<f64>,
    hidden_size: Option<usize>,
    /// The functions of the first direction, then those of the second.
    activations: Vec<Activation>,
    /// How many gates the weights are stacked of.
    gates: usize,
}

/// The parameters of one direction.
pub(super) struct Parameters<'a> {
    pub(super) hidden_size: usize,
    /// `[gates * hidden, hidden]`.
    pub(super) recurrence: &'a [f64],
    /// `[gates * hidden]`.
    pub(super) recurrence_bias: &'a [f64],
    /// `[3 * hidden]`; zeros where the node has none.
    pub(super) peepholes: &'a [f64],
    pub(super) activations: &'a [Activation],
    clip: Option<f64>,
}

/// What one sequence carries from step to step.
pub(super) struct State {
    pub(super) hidden: Vec<f64>,
    /// The cell of an LSTM; zeros elsewhere.
    pub(super) cell: Vec<f64>,
}

impl Parameters<'_> {
    /// The activation with this index, after the clip.
    pub(super) fn activate(&self, index: usize, x: f64) -> f64 {
        let clipped = match self.clip {
            Some(limit) => x.max(-limit).min(limit),
            None => x,
        };
        self.activations[index].apply(clipped)
    }

    /// The recurrence of one row (a unit of a gate) on a hidden state, without bias.
    pub(super) fn recur(&self, row: usize, hidden: &[f64]) -> f64 {
        let start = row * self.hidden_size;
        dot(&self.recurrence[start..start + self.hidden_size], hidden)
    }
}

/// The sizes of one evaluation.
struct Sizes {
    steps: usize,
    batch: usize,
    input: usize,
    hidden: usize,
    directions: usize,
}

impl Layer {
    /// Reads the attributes; `defaults` are the activation functions of one direction.
    pub(super) fn parse(
        source: &NodeSource<'_>,
        gates: usize,
        defaults: &[&str],
    ) -> Result<Self, OperatorError> {
        let attributes = source.attributes;
        let invalid = |name: &str, problem: String| OperatorError::Attribute {
            name: name.to_string(),
            problem,
        };
        let reversed = match attributes.string_or("direction", "forward")? {
            "forward" => vec![false],
            "reverse" => vec![true],
            "bidirectional" => vec![false, true],
            other => return Err(invalid("direction", format!("'{other}' is not a direction"))),
        };
        let hidden_size = match attributes.int("hidden_size")? {
            None => None,
            Some(size) => Some(
                usize::try_from(size)
                    .map_err(|_| invalid("hidden_size", format!("{size} is negative")))?,
            ),
        };
        Ok(Self {
            activations: parse_activations(attributes, defaults, reversed.len())?,
            reversed,
            batch_first: attributes.flag_or("layout", false)?,
            clip: attributes.float("clip")?.map(f64::from),
            hidden_size,
            gates,
        })
    }

    fn sizes(&self, x: &Tensor, w: &Tensor, r: &Tensor) -> Result<Sizes, OperatorError> {
        let (&[first, second, input], &[directions, _, hidden]) = (x.shape(), r.shape()) else {
            return Err(OperatorError::Shapes {
                left: x.shape().to_vec(),
                right: r.shape().to_vec(),
            });
        };
        let (steps, batch) = if self.batch_first { (second, first) } else { (first, second) };
        if directions != self.reversed.len() {
            return Err(OperatorError::Invalid(format!(
                "weights for {directions} directions where {} are walked",
                self.reversed.len()
            )));
        }
        if self.hidden_size.is_some_and(|size| size != hidden) {
            return Err(OperatorError::Attribute {
                name: "hidden_size".into(),
                problem: format!("differs from the weights' {hidden}"),
            });
        }
        let rows = hidden.saturating_mul(self.gates);
        check_shape(w, &[directions, rows, input])?;
        check_shape(r, &[directions, rows, hidden])?;
        // An empty tensor may still name a huge dimension, and the walk takes time for each of these.
        checked_count(&[steps.max(1), batch.max(1)], DataType::I64)?;
        Ok(Sizes { steps, batch, input, hidden, directions })
    }

    /// Walks every sequence. `step` gets the parameters, the input's contribution to all gates with its bias,
    /// and the state, which it moves one step on. Gives all hidden states, the last ones, and the last cells.
    pub(super) fn run(
        &self,
        inputs: &Inputs<'_>,
        step: impl Fn(&Parameters<'_>, &[f64], &mut State),
    ) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let (w, r) = (inputs.tensor(1)?, inputs.tensor(2)?);
        let sizes = self.sizes(x, w, r)?;
        let Sizes { steps, batch, input, hidden, directions } = sizes;
        let rows = hidden * self.gates;
        let data_type = x.data_type();

        let state_shape = if self.batch_first {
            vec![batch, directions, hidden]
        } else {
            vec![directions, batch, hidden]
        };
        let all_shape = if self.batch_first {
            vec![batch, steps, directions, hidden]
        } else {
            vec![steps, directions, batch, hidden]
        };
        let mut all = vec![0.0; checked_count(&all_shape, data_type)?];
        let bias = floats(inputs, 3, &[directions, rows.saturating_mul(2)])?;
        let lengths = sequence_lengths(inputs, batch, steps)?;
        let mut last_hidden = floats(inputs, 5, &state_shape)?;
        let mut last_cell = floats(inputs, 6, &state_shape)?;
        let peepholes = floats(inputs, 7, &[directions, hidden.saturating_mul(3)])?;
        let (x, w, r) = (x.to_f64s()?, w.to_f64s()?, r.to_f64s()?);

        let functions = self.activations.len() / directions;
        for (direction, &reversed) in self.reversed.iter().enumerate() {
            let weights = &w[direction * rows * input..][..rows * input];
            let (input_bias, recurrence_bias) =
                bias[direction * rows * 2..][..rows * 2].split_at(rows);
            let parameters = Parameters {
                hidden_size: hidden,
                recurrence: &r[direction * rows * hidden..][..rows * hidden],
                recurrence_bias,
                peepholes: &peepholes[direction * hidden * 3..][..hidden * 3],
                activations: &self.activations[direction * functions..][..functions],
                clip: self.clip,
            };
            for (sequence, &length) in lengths.iter().enumerate() {
                let slot = if self.batch_first {
                    sequence * directions + direction
                } else {
                    direction * batch + sequence
                } * hidden;
                let mut state = State {
                    hidden: last_hidden[slot..slot + hidden].to_vec(),
                    cell: last_cell[slot..slot + hidden].to_vec(),
                };
                for index in 0..length {
                    let time = if reversed { length - 1 - index } else { index };
                    let (from, to) = if self.batch_first {
                        (
                            sequence * steps + time,
                            (sequence * steps + time) * directions + direction,
                        )
                    } else {
                        (
                            time * batch + sequence,
                            (time * directions + direction) * batch + sequence,
                        )
                    };
                    let token = &x[from * input..][..input];
                    let projected: Vec<f64> = (0..rows)
                        .map(|row| input_bias[row] + dot(&weights[row * input..][..input], token))
                        .collect();
                    step(&parameters, &projected, &mut state);
                    all[to * hidden..][..hidden].copy_from_slice(&state.hidden);
                }
                last_hidden[slot..slot + hidden].copy_from_slice(&state.hidden);
                last_cell[slot..slot + hidden].copy_from_slice(&state.cell);
            }
        }
        let mut outputs = vec![
            Tensor::from_f64s(all_shape, data_type, all)?.into(),
            Tensor::from_f64s(state_shape.clone(), data_type, last_hidden)?.into(),
            Tensor::from_f64s(state_shape, data_type, last_cell)?.into(),
        ];
        outputs.truncate(inputs.output_count());
        Ok(outputs)
    }

    /// The facts of all hidden states, the last ones, and the last cells.
    pub(super) fn infer(&self, inputs: &InputFacts<'_>) -> Vec<Fact> {
        let at = |index, axis: usize| *inputs.dimensions(index)?.get(axis)?;
        let hidden = self.hidden_size.or_else(|| at(2, 2));
        let directions = Some(self.reversed.len());
        let (first, second) = (at(0, 0), at(0, 1));
        let (all, state) = if self.batch_first {
            (vec![first, second, directions, hidden], vec![first, directions, hidden])
        } else {
            (vec![first, directions, second, hidden], vec![directions, second, hidden])
        };
        let data_type = inputs.data_type(0);
        let state = Fact::partial(data_type, Some(state));
        let mut facts = vec![Fact::partial(data_type, Some(all)), state.clone(), state];
        facts.truncate(inputs.output_count());
        facts
    }

    /// Multiply-adds of every gate on input and hidden state, at every step of every sequence.
    pub(super) fn flops(&self, inputs: &InputFacts<'_>) -> u64 {
        let (Some(x), Some(r)) = (inputs.shape(0), inputs.shape(2)) else { return 0 };
        let (&[first, second, input], &[directions, rows, hidden]) = (&x[..], &r[..]) else {
            return 0;
        };
        [first, second, directions, rows, input.saturating_add(hidden)]
            .iter()
            .fold(2u64, |product, &size| product.saturating_mul(size as u64))
    }
}

fn check_shape(tensor: &Tensor, expected: &[usize]) -> Result<(), OperatorError> {
    if tensor.shape() == expected {
        return Ok(());
    }
    Err(OperatorError::Shapes { left: tensor.shape().to_vec(), right: expected.to_vec() })
}

/// An optional input of floats, zeros where it is absent.
fn floats(inputs: &Inputs<'_>, index: usize, shape: &[usize]) -> Result<Vec<f64>, OperatorError> {
    match inputs.optional_tensor(index)? {
        None => Ok(vec![0.0; checked_count(shape, DataType::F64)?]),
        Some(tensor) => {
            check_shape(tensor, shape)?;
            tensor.to_f64s()
        }
    }
}

fn sequence_lengths(
    inputs: &Inputs<'_>,
    batch: usize,
    steps: usize,
) -> Result<Vec<usize>, OperatorError> {
    let Some(given) = inputs.optional_tensor(4)? else { return Ok(vec![steps; batch]) };
    check_shape(given, &[batch])?;
    given
        .to_i64s()?
        .iter()
        .map(|&length| {
            usize::try_from(length).ok().filter(|&length| length <= steps).ok_or_else(|| {
                OperatorError::Invalid(format!("a sequence of length {length} in {steps} steps"))
            })
        })
        .collect()
}
