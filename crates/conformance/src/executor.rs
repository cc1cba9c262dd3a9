//! What the suite runs models on.

use weft_ir::{Graph, Value, reference};

/// Something that computes a graph's outputs.
pub trait Executor {
    /// The name to select and report it by.
    fn name(&self) -> &str;

    /// The outputs of `graph` for `inputs`, one per graph input; `None` for inputs with a constant of their own.
    fn run(&self, graph: &Graph, inputs: Vec<Option<Value>>) -> Result<Vec<Value>, String>;
}

/// The reference executor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl Executor for Reference {
    fn name(&self) -> &str {
        "reference"
    }

    fn run(&self, graph: &Graph, inputs: Vec<Option<Value>>) -> Result<Vec<Value>, String> {
        reference::evaluate(graph, &inputs).map_err(|error| error.to_string())
    }
}

/// The reference executor on what is left of the model after it was saved and loaded again.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrip;

impl Executor for RoundTrip {
    fn name(&self) -> &str {
        "round-trip"
    }

    fn run(&self, graph: &Graph, inputs: Vec<Option<Value>>) -> Result<Vec<Value>, String> {
        let saved = weft_onnx::to_bytes(graph).map_err(|error| error.to_string())?;
        let loaded =
            weft_onnx::load_bytes(saved.into(), None).map_err(|error| error.to_string())?;
        Reference.run(&loaded, inputs)
    }
}
