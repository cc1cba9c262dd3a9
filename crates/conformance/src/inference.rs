//! Checking what operators infer against what they evaluate to, node by node.

use weft_ir::{Fact, Graph, InputFacts, Inputs, Node, Value};

use crate::comparison::compare;

/// What inference is told of an input.
type View = fn(&Value) -> Fact;

/// How much inference is told of the inputs.
const VIEWS: &[(&str, View)] = &[
    ("nothing", |_| Fact::unknown()),
    ("ranks", |value| match value.tensor() {
        Some(tensor) => Fact::partial(Some(tensor.data_type()), Some(vec![None; tensor.rank()])),
        None => Fact::unknown(),
    }),
    ("shapes", |value| match value.tensor() {
        Some(tensor) => Fact::new(tensor.data_type(), tensor.shape()),
        None => Fact::unknown(),
    }),
    ("constants", |value| value.tensor().cloned().map_or(Fact::unknown(), Fact::constant)),
];

/// Evaluates the graph and fails where a node's inferred facts contradict its evaluated outputs.
pub fn check_inference(graph: &Graph, inputs: &[Option<Value>]) -> Result<(), String> {
    let constants = graph.values().iter().map(|value| value.constant.clone().map(Value::Tensor));
    let mut values: Vec<Option<Value>> = constants.collect();
    for (id, input) in graph.inputs().iter().zip(inputs) {
        if input.is_some() {
            values[id.index()] = input.clone();
        }
    }
    for node in graph.nodes() {
        let arguments: Vec<Option<Value>> =
            node.inputs.iter().map(|id| values[(*id)?.index()].clone()).collect();
        let results = node
            .operator
            .evaluate(&Inputs::new(&arguments, node.outputs.len()))
            .map_err(|error| format!("{}: {error}", place(node)))?;
        for (view, fact_of) in VIEWS {
            check_node(node, &arguments, &results, fact_of)
                .map_err(|why| format!("{}: told {view}, {why}", place(node)))?;
        }
        for (output, result) in node.outputs.iter().zip(results) {
            if let Some(id) = output {
                values[id.index()] = Some(result);
            }
        }
    }
    Ok(())
}

fn place(node: &Node) -> String {
    format!("node '{}' ({})", node.name, node.operator.name())
}

fn check_node(
    node: &Node,
    arguments: &[Option<Value>],
    results: &[Value],
    fact_of: &View,
) -> Result<(), String> {
    let facts: Vec<Option<Fact>> =
        arguments.iter().map(|argument| argument.as_ref().map(fact_of)).collect();
    let facts: Vec<Option<&Fact>> = facts.iter().map(Option::as_ref).collect();
    let inferred = node
        .operator
        .infer(&InputFacts::new(&facts, node.outputs.len()))
        .map_err(|error| format!("inference fails: {error}"))?;
    for (index, output) in node.outputs.iter().enumerate() {
        let (Some(fact), Some(result)) = (inferred.get(index), results.get(index)) else {
            return Err(format!(
                "inference gives {} outputs where {} are asked for",
                inferred.len(),
                node.outputs.len()
            ));
        };
        if output.is_some() && !agrees(fact, result, node.operator.is_deterministic()) {
            return Err(format!(
                "inference says {fact} for output {index}, evaluation gives {}",
                describe(result)
            ));
        }
    }
    Ok(())
}

fn agrees(fact: &Fact, value: &Value, is_deterministic: bool) -> bool {
    let Some(tensor) = value.tensor() else {
        return *fact == Fact::unknown();
    };
    let type_agrees = fact.data_type.is_none_or(|data_type| data_type == tensor.data_type());
    let shape_agrees = fact.dimensions.as_ref().is_none_or(|dimensions| {
        dimensions.len() == tensor.rank()
            && dimensions
                .iter()
                .zip(tensor.shape())
                .all(|(known, &actual)| known.is_none_or(|known| known == actual))
    });
    let constant_agrees = fact.constant.as_ref().is_none_or(|constant| {
        is_deterministic && compare(&constant.clone().into(), &tensor.clone().into()).is_ok()
    });
    type_agrees && shape_agrees && constant_agrees
}

fn describe(value: &Value) -> String {
    match value {
        Value::Tensor(tensor) => format!("{}{:?}", tensor.data_type(), tensor.shape()),
        Value::Sequence(data_type, tensors) => {
            format!("a sequence of {} {data_type} tensors", tensors.len())
        }
        Value::Optional(None) => "an empty optional".into(),
        Value::Optional(Some(inner)) => format!("an optional of {}", describe(inner)),
    }
}
