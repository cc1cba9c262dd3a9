//! What hostile bytes are put through: reading, inference and writing, which must neither panic nor run on.

use bytes::Bytes;
use weft_ir::{Dimension, Fact, Graph, InputFacts, TensorType};

/// Reads a model and, where that works, infers every node and writes the model again.
/// Returns whether it could be read.
pub(crate) fn exercise(bytes: Bytes) -> bool {
    let Ok(graph) = weft_onnx::load_bytes(bytes, None) else { return false };
    infer(&graph);
    if let Ok(saved) = weft_onnx::to_bytes(&graph) {
        let again = weft_onnx::load_bytes(saved.into(), None);
        assert!(again.is_ok(), "a saved model cannot be loaded: {again:?}");
    }
    true
}

fn infer(graph: &Graph) {
    let mut facts: Vec<Fact> = graph
        .values()
        .iter()
        .map(|value| match (&value.constant, &value.declared) {
            (Some(constant), _) => Fact::constant(constant.clone()),
            (None, Some(declared)) => declared_fact(declared),
            (None, None) => Fact::unknown(),
        })
        .collect();
    for node in graph.nodes() {
        let inputs: Vec<Option<&Fact>> =
            node.inputs.iter().map(|id| id.map(|id| &facts[id.index()])).collect();
        let inferred = node.operator.infer(&InputFacts::new(&inputs, node.outputs.len()));
        for (output, fact) in node.outputs.iter().zip(inferred.unwrap_or_default()) {
            if let Some(id) = output {
                facts[id.index()] = fact;
            }
        }
    }
}

fn declared_fact(declared: &TensorType) -> Fact {
    let size = |dimension: &Dimension| match dimension {
        Dimension::Known(size) => Some(*size),
        _ => None,
    };
    let dimensions = declared.dimensions.as_ref();
    Fact::partial(
        Some(declared.data_type),
        dimensions.map(|dimensions| dimensions.iter().map(size).collect()),
    )
}
