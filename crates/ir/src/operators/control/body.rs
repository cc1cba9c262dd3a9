//! Bodies of control flow: evaluating them, inferring them, and collecting what they give each time.

use crate::axis::normalise_axis;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::facts::infer_and_fold;
use crate::graph::{Dimension, Graph};
use crate::operator::{InputFacts, Inputs};
use crate::operators::layout::selection::zero;
use crate::operators::layout::stack;
use crate::reference;
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// How often an inferred loop state is widened before it counts as unknown.
const MAX_WIDENINGS: usize = 8;

/// The most iterations whose outputs are collected, also where these are empty and so take no memory of their own.
pub(super) const MAX_COLLECTED: usize = 1 << 24;

/// Values as a node lists them, absent ones as `None`.
pub(super) type Values<'a> = &'a [Option<Value>];

/// A node's inputs without those that its bodies capture, and those.
pub(super) fn split_captured<'a>(
    body: &Graph,
    inputs: &Inputs<'a>,
) -> Result<(Values<'a>, Values<'a>), OperatorError> {
    let own = inputs.len().checked_sub(body.captured()).ok_or_else(too_few)?;
    Ok(inputs.values().split_at(own))
}

/// Like [`split_captured`], for facts.
pub(super) fn split_captured_facts(
    body: &Graph,
    inputs: &InputFacts<'_>,
) -> Result<(Vec<Fact>, Vec<Fact>), OperatorError> {
    let fact = |index| inputs.fact(index).cloned().unwrap_or_default();
    let own = inputs.len().checked_sub(body.captured()).ok_or_else(too_few)?;
    Ok(((0..own).map(fact).collect(), (own..inputs.len()).map(fact).collect()))
}

fn too_few() -> OperatorError {
    OperatorError::Invalid("fewer inputs than the body captures".into())
}

/// Evaluates a body on its own inputs and those that it captures.
pub(super) fn evaluate(
    body: &Graph,
    own: Vec<Option<Value>>,
    captured: &[Option<Value>],
) -> Result<Vec<Value>, OperatorError> {
    let mut inputs = own;
    inputs.extend_from_slice(captured);
    reference::evaluate(body, &inputs)
        .map_err(|problem| OperatorError::Invalid(format!("in body '{}': {problem}", body.name)))
}

/// What is known of a body's outputs. A body that does not fit what is known gives nothing, since it may never run.
pub(super) fn infer(body: &Graph, own: &[Fact], captured: &[Fact]) -> Vec<Fact> {
    let unknown = || vec![Fact::unknown(); body.outputs().len()];
    let inputs = [own, captured].concat();
    if inputs.len() != body.inputs().len() {
        return unknown();
    }
    let mut body = body.clone();
    match infer_and_fold(&mut body, &inputs) {
        Ok(facts) => body.outputs().iter().map(|&id| facts.of(id).clone()).collect(),
        Err(_) => unknown(),
    }
}

/// What holds of a value that is one of two.
pub(super) fn either(left: &Fact, right: &Fact) -> Fact {
    let dimensions = match (&left.dimensions, &right.dimensions) {
        (Some(left), Some(right)) if left.len() == right.len() => {
            let agreed = |(left, right): (&Option<usize>, &Option<usize>)| {
                if left == right { *left } else { None }
            };
            Some(left.iter().zip(right).map(agreed).collect())
        }
        _ => None,
    };
    let data_type = left.data_type.filter(|_| left.data_type == right.data_type);
    Fact::partial(data_type, dimensions)
}

/// What holds of loop states before and after every iteration, and of the body's outputs in every iteration.
/// `step` infers the outputs from the states; the states are the outputs from `first_state` on.
pub(super) fn invariant(
    initial: &[Fact],
    first_state: usize,
    step: impl Fn(&[Fact]) -> Vec<Fact>,
) -> Option<(Vec<Fact>, Vec<Fact>)> {
    let mut states: Vec<Fact> =
        initial.iter().map(|fact| Fact { constant: None, ..fact.clone() }).collect();
    for _ in 0..MAX_WIDENINGS {
        let outputs = step(&states);
        let after = outputs.get(first_state..first_state.checked_add(states.len())?)?;
        let wider: Vec<Fact> =
            states.iter().zip(after).map(|(before, after)| either(before, after)).collect();
        if wider == states {
            return Some((states, outputs));
        }
        states = wider;
    }
    None
}

/// What one output of a body gave in each iteration, to be stacked along a new axis.
#[derive(Default)]
pub(super) struct Collected(Vec<Tensor>);

impl Collected {
    /// Adds one iteration's tensor, refused where the stack would grow too large.
    pub(super) fn push(&mut self, value: Value) -> Result<(), OperatorError> {
        let tensor = value.into_tensor()?;
        let stacked = [&[self.0.len() + 1], tensor.shape()].concat();
        checked_count(&stacked, tensor.data_type())?;
        if self.0.len() >= MAX_COLLECTED {
            let problem = format!("more than {MAX_COLLECTED} iterations to collect");
            return Err(OperatorError::Invalid(problem));
        }
        self.0.push(tensor);
        Ok(())
    }

    /// All iterations, in reverse where asked for. Without any, the body's declaration tells type and shape.
    pub(super) fn finish(
        mut self,
        axis: i64,
        is_reversed: bool,
        body: &Graph,
        output: usize,
    ) -> Result<Tensor, OperatorError> {
        if is_reversed {
            self.0.reverse();
        }
        let Some(first) = self.0.first() else {
            return none_collected(axis, body, output);
        };
        let axis = normalise_axis(axis, first.rank() + 1)?;
        stack(&self.0.iter().collect::<Vec<_>>(), axis)
    }
}

/// What is known of a stack along a new axis, from what is known of each of its parts.
pub(super) fn stacked(part: Fact, axis: i64, count: Option<usize>) -> Result<Fact, OperatorError> {
    let mut dimensions = part.dimensions;
    if let Some(dimensions) = &mut dimensions {
        dimensions.insert(normalise_axis(axis, dimensions.len() + 1)?, count);
    }
    Ok(Fact::partial(part.data_type, dimensions))
}

fn none_collected(axis: i64, body: &Graph, output: usize) -> Result<Tensor, OperatorError> {
    let declared = body.outputs().get(output).and_then(|&id| body.value(id).declared.as_ref());
    let data_type = declared.map_or(DataType::F32, |declared| declared.data_type);
    let dimensions = declared.and_then(|declared| declared.dimensions.as_deref()).unwrap_or(&[]);
    let size = |dimension: &Dimension| match dimension {
        Dimension::Known(size) => *size,
        _ => 0,
    };
    let mut shape: Vec<usize> = dimensions.iter().map(size).collect();
    shape.insert(normalise_axis(axis, shape.len() + 1)?, 0);
    zero(data_type).gathered(shape, &[])
}
