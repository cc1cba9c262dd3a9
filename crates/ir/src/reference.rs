//! The reference executor: evaluates a graph node by node, as the operators define themselves.

use crate::error::GraphError;
use crate::graph::Graph;
use crate::operator::Inputs;
use crate::value::Value;

/// Evaluates `graph` on `inputs`, one per graph input in order; `None` for inputs that have a constant of their own.
pub fn evaluate(graph: &Graph, inputs: &[Option<Value>]) -> Result<Vec<Value>, GraphError> {
    if inputs.len() != graph.inputs().len() {
        return Err(GraphError::Input(format!(
            "graph '{}' takes {} inputs, {} given",
            graph.name,
            graph.inputs().len(),
            inputs.len()
        )));
    }
    let mut values: Vec<Option<Value>> =
        graph.values().iter().map(|value| value.constant.clone().map(Value::Tensor)).collect();
    for (&id, input) in graph.inputs().iter().zip(inputs) {
        if let Some(input) = input {
            values[id.index()] = Some(input.clone());
        }
    }
    let mut uses = vec![0usize; graph.values().len()];
    let used =
        graph.nodes().iter().flat_map(|node| node.inputs.iter().flatten()).chain(graph.outputs());
    used.for_each(|id| uses[id.index()] += 1);

    for node in graph.nodes() {
        let arguments: Vec<Option<Value>> = node
            .inputs
            .iter()
            .map(|input| {
                let id = (*input)?;
                uses[id.index()] -= 1;
                // The last reader takes the value, so that large intermediates are freed early.
                if uses[id.index()] == 0 {
                    values[id.index()].take()
                } else {
                    values[id.index()].clone()
                }
            })
            .collect();
        let fail = |source| GraphError::Node {
            node: node.name.clone(),
            operator: node.operator.name().to_string(),
            source,
        };
        let results =
            node.operator.evaluate(&Inputs::new(&arguments, node.outputs.len())).map_err(fail)?;
        if results.len() < node.outputs.len() {
            let problem = format!(
                "gives {} outputs where {} are asked for",
                results.len(),
                node.outputs.len()
            );
            return Err(fail(crate::OperatorError::Invalid(problem)));
        }
        for (output, result) in node.outputs.iter().zip(results) {
            if let Some(id) = output {
                values[id.index()] = Some(result);
            }
        }
    }
    graph
        .outputs()
        .iter()
        .map(|id| {
            let value = values[id.index()].clone();
            value.ok_or_else(|| GraphError::Undefined(graph.value(*id).name.clone()))
        })
        .collect()
}
