//! RNN: a simple recurrent layer.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

use super::layer::Layer;

/// `h = f(W x + R h + b)` at every step.
#[derive(Debug)]
struct Rnn(Layer);

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Rnn(Layer::parse(source, 1, &["Tanh"])?)))
}

impl Operator for Rnn {
    fn name(&self) -> &'static str {
        "RNN"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        self.0.run(inputs, |parameters, projected, state| {
            state.hidden = (0..parameters.hidden_size)
                .map(|unit| {
                    let sum = projected[unit]
                        + parameters.recur(unit, &state.hidden)
                        + parameters.recurrence_bias[unit];
                    parameters.activate(0, sum)
                })
                .collect();
        })
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(self.0.infer(inputs))
    }

    fn flops(&self, inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        self.0.flops(inputs)
    }
}
