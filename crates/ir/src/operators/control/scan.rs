//! Scan: a body run over the positions of its inputs' scan axes.

use std::sync::Arc;

use super::body::{self, Collected};
use crate::axis::normalise_axis;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::graph::Graph;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::layout::selection::position_of;
use crate::tensor::Tensor;
use crate::value::Value;

/// Runs the body once per position, handing its states on; its further outputs are stacked.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    body: Arc<Graph>,
    /// Values handed from one iteration to the next.
    states: usize,
    inputs: Vec<ScanAxis>,
    outputs: Vec<ScanAxis>,
}

/// Along which axis, and which way, an input is taken apart or an output put together.
#[derive(Clone, Copy, Debug)]
struct ScanAxis {
    axis: i64,
    is_reversed: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    match source.opset {
        ..9 => super::batched_scan::build(source),
        _ => Ok(Arc::new(Scan::new(source, "scan_input_directions")?)),
    }
}

impl Scan {
    pub(super) fn new(source: &NodeSource<'_>, directions: &str) -> Result<Self, OperatorError> {
        let attributes = source.attributes;
        let body = attributes.graph("body")?;
        let invalid = |name: &str| OperatorError::Attribute {
            name: name.into(),
            problem: "does not fit the body".into(),
        };
        let scanned = attributes.int_or("num_scan_inputs", 0)?;
        let states = usize::try_from(scanned)
            .ok()
            .and_then(|scanned| (body.inputs().len() - body.captured()).checked_sub(scanned))
            .ok_or_else(|| invalid("num_scan_inputs"))?;
        let stacked = body.outputs().len().checked_sub(states).ok_or_else(|| invalid("body"))?;
        let axes = |axes: &str, directions: &str, count: usize| {
            let list = |name: &str| {
                let list = attributes.ints(name)?;
                match list.is_none_or(|list| list.len() == count) {
                    true => Ok(list),
                    false => Err(invalid(name)),
                }
            };
            let (axes, directions) = (list(axes)?, list(directions)?);
            let axis = |index: usize| ScanAxis {
                axis: axes.map_or(0, |axes| axes[index]),
                is_reversed: directions.is_some_and(|directions| directions[index] != 0),
            };
            Ok::<Vec<ScanAxis>, OperatorError>((0..count).map(axis).collect())
        };
        let scanned = body.inputs().len() - body.captured() - states;
        let inputs = axes("scan_input_axes", directions, scanned)?;
        let outputs = axes("scan_output_axes", "scan_output_directions", stacked)?;
        Ok(Self { body, states, inputs, outputs })
    }

    pub(super) fn body(&self) -> &Graph {
        &self.body
    }

    pub(super) fn states(&self) -> usize {
        self.states
    }

    /// The final states and the stacked outputs, from the initial states and the scanned inputs; over the first
    /// `length` positions only, where that is given.
    pub(super) fn run(
        &self,
        own: &[Option<Value>],
        captured: &[Option<Value>],
        length: Option<usize>,
    ) -> Result<Vec<Value>, OperatorError> {
        let (initial, scanned) =
            own.split_at_checked(self.states).ok_or(OperatorError::MissingInput(own.len()))?;
        let scanned = self.scanned(scanned)?;
        let lengths = scanned.iter().map(|(tensor, axis, _)| tensor.shape()[*axis]);
        let full = lengths.clone().next().unwrap_or(0);
        let length = length.unwrap_or(full);
        if lengths.clone().any(|other| other != full) || length > full {
            let lengths: Vec<usize> = lengths.collect();
            let problem = format!("{length} positions of scanned inputs of lengths {lengths:?}");
            return Err(OperatorError::Invalid(problem));
        }
        let mut states = initial.to_vec();
        let mut collected: Vec<Collected> = Vec::new();
        collected.resize_with(self.outputs.len(), Collected::default);
        for iteration in 0..length {
            let mut arguments = states;
            for &(tensor, axis, is_reversed) in &scanned {
                let position = if is_reversed { length - 1 - iteration } else { iteration };
                arguments.push(Some(position_of(tensor, axis, position)?.into()));
            }
            let mut outputs = body::evaluate(&self.body, arguments, captured)?.into_iter();
            states = outputs.by_ref().take(self.states).map(Some).collect();
            for (stack, value) in collected.iter_mut().zip(outputs) {
                stack.push(value)?;
            }
        }
        let states = states.into_iter().enumerate();
        let states = states.map(|(index, state)| state.ok_or(OperatorError::MissingInput(index)));
        let mut results = states.collect::<Result<Vec<Value>, _>>()?;
        for (index, (stack, output)) in collected.into_iter().zip(&self.outputs).enumerate() {
            let number = self.states + index;
            let stacked = stack.finish(output.axis, output.is_reversed, &self.body, number)?;
            results.push(stacked.into());
        }
        Ok(results)
    }

    fn scanned<'a>(
        &self,
        values: &'a [Option<Value>],
    ) -> Result<Vec<(&'a Tensor, usize, bool)>, OperatorError> {
        let tensor = |(index, scan): (usize, &ScanAxis)| {
            let index_in_node = self.states + index;
            let value = values.get(index).and_then(Option::as_ref);
            let tensor = value
                .ok_or(OperatorError::MissingInput(index_in_node))?
                .tensor()
                .ok_or(OperatorError::WrongKind { index: index_in_node, expected: "a tensor" })?;
            Ok((tensor, normalise_axis(scan.axis, tensor.rank())?, scan.is_reversed))
        };
        self.inputs.iter().enumerate().map(tensor).collect()
    }
}

impl Operator for Scan {
    fn name(&self) -> &'static str {
        "Scan"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (own, captured) = body::split_captured(&self.body, inputs)?;
        self.run(own, captured, None)
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let unknown = || vec![Fact::unknown(); inputs.output_count()];
        let (own, captured) = body::split_captured_facts(&self.body, inputs)?;
        let Some((initial, scanned)) = own.split_at_checked(self.states) else {
            return Ok(unknown());
        };
        let mut length = None;
        let mut elements = Vec::with_capacity(scanned.len());
        for (fact, scan) in scanned.iter().zip(&self.inputs) {
            let mut dimensions = fact.dimensions.clone();
            if let Some(dimensions) = &mut dimensions {
                let axis = normalise_axis(scan.axis, dimensions.len())?;
                length = length.or(dimensions.remove(axis));
            }
            elements.push(Fact::partial(fact.data_type, dimensions));
        }
        let step =
            |states: &[Fact]| body::infer(&self.body, &[states, &elements].concat(), &captured);
        let Some((mut results, outputs)) = body::invariant(initial, 0, step) else {
            return Ok(unknown());
        };
        for (output, scan) in outputs.into_iter().skip(self.states).zip(&self.outputs) {
            // Without an iteration the stack has what type and dimensions the body declares.
            results.push(match length {
                Some(1..) => body::stacked(output, scan.axis, length)?,
                _ => Fact::unknown(),
            });
        }
        Ok(results)
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
