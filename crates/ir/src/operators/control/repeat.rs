//! Loop: a body repeated a number of times, or while a condition holds.

use std::sync::Arc;

use super::body::{self, Collected};
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::graph::Graph;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// Repeats the body, handing its states on; its further outputs are stacked over the iterations.
#[derive(Clone, Debug)]
struct Loop {
    body: Arc<Graph>,
    /// Values handed from one iteration to the next.
    states: usize,
}

/// The trip count and the condition stand before the states, in the node as in the body.
const LEADING: usize = 2;

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let body = source.attributes.graph("body")?;
    let (inputs, outputs) = (body.inputs().len() - body.captured(), body.outputs().len());
    // The body gives back a condition, but no iteration number.
    let states = inputs.checked_sub(LEADING).filter(|&states| outputs > states);
    let states = states.ok_or_else(|| OperatorError::Attribute {
        name: "body".into(),
        problem: format!("takes {inputs} inputs and gives {outputs} outputs"),
    })?;
    Ok(Arc::new(Loop { body, states }))
}

impl Operator for Loop {
    fn name(&self) -> &'static str {
        "Loop"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (own, captured) = body::split_captured(&self.body, inputs)?;
        let limit = match inputs.optional_tensor(0)? {
            Some(limit) if !own.is_empty() => Some(limit.only::<i64>()?),
            _ => None,
        };
        let mut holds = match inputs.optional_tensor(1)? {
            Some(condition) if own.len() > 1 => condition.only::<bool>()?,
            _ => true,
        };
        let mut states: Vec<Option<Value>> = own.get(LEADING..).unwrap_or_default().to_vec();
        states.resize(self.states, None);
        let mut collected: Vec<Collected> = Vec::new();
        collected.resize_with(self.body.outputs().len() - 1 - self.states, Collected::default);
        let mut iteration = 0i64;
        while holds && limit.is_none_or(|limit| iteration < limit) {
            let leading = [Tensor::scalar(iteration).into(), Tensor::scalar(true).into()];
            let arguments = leading.map(Some).into_iter().chain(states).collect();
            let mut outputs = body::evaluate(&self.body, arguments, captured)?.into_iter();
            let condition = outputs.next().ok_or(OperatorError::MissingInput(1))?;
            holds = condition.into_tensor()?.only::<bool>()?;
            states = outputs.by_ref().take(self.states).map(Some).collect();
            for (scan, value) in collected.iter_mut().zip(outputs) {
                scan.push(value)?;
            }
            iteration += 1;
        }
        let states = states
            .into_iter()
            .enumerate()
            .map(|(index, state)| state.ok_or(OperatorError::MissingInput(LEADING + index)));
        let mut results = states.collect::<Result<Vec<Value>, _>>()?;
        for (index, scan) in collected.into_iter().enumerate() {
            let stacked = scan.finish(0, false, &self.body, 1 + self.states + index)?;
            results.push(stacked.into());
        }
        Ok(results)
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let (own, captured) = body::split_captured_facts(&self.body, inputs)?;
        let always = |fact: &Fact| {
            fact.constant.as_ref().and_then(|condition| condition.only::<bool>().ok()) == Some(true)
        };
        let condition = match own.get(1) {
            Some(fact) if inputs.fact(1).is_some() => fact.clone(),
            _ => Fact::constant(Tensor::scalar(true)),
        };
        // Every iteration is entered with a true condition, whatever it was before.
        let entered = Fact::constant(Tensor::scalar(true));
        let leading = [Fact::new(DataType::I64, &[]), entered];
        let initial = own.get(LEADING..).unwrap_or_default();
        let step =
            |states: &[Fact]| body::infer(&self.body, &[&leading, states].concat(), &captured);
        let Some((mut results, outputs)) = body::invariant(initial, 1, step) else {
            return Ok(vec![Fact::unknown(); inputs.output_count()]);
        };
        let runs_to_the_limit = always(&condition) && outputs.first().is_some_and(always);
        let limit = own.first().and_then(|limit| limit.constant.as_ref()?.only::<i64>().ok());
        let iterations = limit
            .filter(|_| runs_to_the_limit)
            .and_then(|limit| usize::try_from(limit.max(0)).ok());
        for output in outputs.into_iter().skip(1 + self.states) {
            // Without an iteration the stack has what type and dimensions the body declares.
            results.push(match iterations {
                Some(1..) => body::stacked(output, 0, iterations)?,
                _ => Fact::unknown(),
            });
        }
        Ok(results)
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{Attribute, Attributes};
    use crate::builder::{GraphBuilder, standard_operator};
    use crate::graph::Dimension;

    /// Grows its state by one row each time, and gives the state's columns and the captured value.
    fn growing_loop() -> Arc<dyn Operator> {
        let mut builder = GraphBuilder::new("body", 21);
        builder.input("iteration", DataType::I64, &[]);
        let condition = builder.input("condition", DataType::Bool, &[]);
        let unknown = [Dimension::Unknown, Dimension::Unknown];
        let state = builder.symbolic_input("state", DataType::F32, &unknown);
        let row = builder.constant("row", Tensor::from_vec(vec![1, 2], vec![0f32; 2]).unwrap());
        let grown = builder.node("Concat", &[state, row], Attributes::new().with("axis", 0i64));
        let again = builder.node("Identity", &[condition], Attributes::new());
        let columns = builder.node("Shape", &[state], Attributes::new().with("start", 1i64));
        builder.output("again", again);
        builder.output("grown", grown);
        builder.output("columns", columns);
        builder.declare(columns, DataType::I64, &[Dimension::Known(1)]);
        let mut attributes = Attributes::new();
        attributes.insert("body", Attribute::Graph(Arc::new(builder.finish().unwrap())));
        standard_operator("Loop", 21, &attributes).unwrap()
    }

    #[test]
    fn states_widen_to_what_every_iteration_keeps() {
        let state = Fact::new(DataType::F32, &[3, 2]);
        let trips = Fact::constant(Tensor::scalar(4i64));
        let facts =
            growing_loop().infer(&InputFacts::new(&[Some(&trips), None, Some(&state)], 2)).unwrap();
        let grown = Fact::partial(Some(DataType::F32), Some(vec![None, Some(2)]));
        assert_eq!(facts, [grown, Fact::new(DataType::I64, &[4, 1])]);
    }

    #[test]
    fn no_iteration_leaves_the_state_and_an_empty_stack() {
        for (trips, rows, stacked) in [(0i64, 3, 0), (2, 5, 2)] {
            let state = Tensor::from_vec(vec![3, 2], vec![0f32; 6]).unwrap();
            let inputs = [Some(Tensor::scalar(trips).into()), None, Some(state.into())];
            let outputs = growing_loop().evaluate(&Inputs::new(&inputs, 2)).unwrap();
            let shapes: Vec<&[usize]> =
                outputs.iter().map(|value| value.tensor().unwrap().shape()).collect();
            assert_eq!(shapes, [&[rows, 2][..], &[stacked, 1]]);
        }
    }
}
