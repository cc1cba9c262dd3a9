//! What a plan's steps run: kernels bound to one node's shapes and weights.

use weft_ir::{OperatorError, Value};

use super::memory::Memory;
use super::slot::Operand;
use crate::{SharedOutput, Worker};

/// Device code for one node at fixed shapes.
pub(crate) trait Kernel: Send + Sync {
    /// The kernel's name, with its algorithm where there is a choice.
    fn name(&self) -> String;

    /// Computes the outputs. Every worker of the run calls this with the same call.
    fn run(&self, worker: &Worker<'_>, call: &Call<'_>);

    /// Bytes of the weights that it holds in its own form.
    fn weight_bytes(&self) -> usize {
        0
    }
}

/// One kernel's operands in one run.
pub(crate) struct Call<'a> {
    pub(super) memory: &'a Memory<'a>,
    pub(super) inputs: &'a [Option<Operand>],
    pub(super) outputs: &'a [Option<Operand>],
    pub(super) chunk: usize,
}

impl Call<'_> {
    /// The elements of an input; empty where it is absent.
    pub(crate) fn input(&self, index: usize) -> &[f32] {
        self.optional_input(index).unwrap_or(&[])
    }

    /// The elements of an input that may be absent.
    pub(crate) fn optional_input(&self, index: usize) -> Option<&[f32]> {
        self.inputs.get(index)?.as_ref().map(|operand| self.memory.read(operand, self.chunk))
    }

    /// An input of any type; copied where it lies in the arena.
    pub(crate) fn value(&self, index: usize) -> Result<Option<Value>, OperatorError> {
        match self.inputs.get(index) {
            Some(Some(operand)) => self.memory.value(operand).map(Some),
            _ => Ok(None),
        }
    }

    /// Where an output is to be written; `None` where nobody asked for it.
    pub(crate) fn optional_output(&self, index: usize) -> Option<SharedOutput<'_, f32>> {
        self.outputs.get(index)?.as_ref().map(|operand| self.memory.write(operand, self.chunk))
    }

    /// Where the first output is to be written.
    pub(crate) fn output(&self) -> SharedOutput<'_, f32> {
        self.optional_output(0).expect("a kernel's first output is always asked for")
    }

    /// Stores an output of any type; dropped where nobody asked for it.
    pub(super) fn store(&self, index: usize, value: Value) -> Result<(), OperatorError> {
        match self.outputs.get(index) {
            Some(Some(operand)) => self.memory.store(operand, value),
            _ => Ok(()),
        }
    }

    /// Ends the run with an error.
    pub(crate) fn fail(&self, error: weft_ir::GraphError) {
        self.memory.fail(error);
    }
}
