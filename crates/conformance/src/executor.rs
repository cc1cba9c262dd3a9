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
