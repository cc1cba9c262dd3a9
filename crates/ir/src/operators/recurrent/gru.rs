//! GRU: a recurrent layer with an update gate and a reset gate.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

use super::layer::{Layer, Parameters, State};

/// Gates lie in the order update, reset, hidden.
#[derive(Debug)]
struct Gru {
    layer: Layer,
    /// Whether the hidden gate's recurrence comes before the reset gate is applied.
    linear_before_reset: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Gru {
        layer: Layer::parse(source, 3, &["Sigmoid", "Tanh"])?,
        linear_before_reset: source.attributes.flag_or("linear_before_reset", false)?,
    }))
}

impl Gru {
    fn step(&self, parameters: &Parameters<'_>, projected: &[f64], state: &mut State) {
        let size = parameters.hidden_size;
        let previous = &state.hidden;
        let recurrent = |row: usize, hidden: &[f64]| {
            parameters.recur(row, hidden) + parameters.recurrence_bias[row]
        };
        let gate = |row: usize| parameters.activate(0, projected[row] + recurrent(row, previous));
        let reset: Vec<f64> = (size..2 * size).map(gate).collect();
        let kept: Vec<f64> =
            previous.iter().zip(&reset).map(|(hidden, reset)| hidden * reset).collect();
        state.hidden = (0..size)
            .map(|unit| {
                let row = 2 * size + unit;
                let recurrence = if self.linear_before_reset {
                    reset[unit] * recurrent(row, previous)
                } else {
                    recurrent(row, &kept)
                };
                let candidate = parameters.activate(1, projected[row] + recurrence);
                let update = gate(unit);
                (1.0 - update) * candidate + update * previous[unit]
            })
            .collect();
    }
}

impl Operator for Gru {
    fn name(&self) -> &'static str {
        "GRU"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        self.layer.run(inputs, |parameters, projected, state| {
            self.step(parameters, projected, state);
        })
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(self.layer.infer(inputs))
    }

    fn flops(&self, inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        self.layer.flops(inputs)
    }
}
