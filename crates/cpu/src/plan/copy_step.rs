//! A value copied as it is: where an output of the model is also an input, a constant, or given back twice.

use super::kernel::{Call, Kernel};
use crate::Worker;

/// Copies its input to its output.
pub(crate) struct CopyStep;

impl Kernel for CopyStep {
    fn name(&self) -> String {
        "copy".into()
    }

    fn run(&self, worker: &Worker<'_>, call: &Call<'_>) {
        if worker.index() == 0 {
            let input = call.input(0);
            // SAFETY: only this worker writes the output, and no other step runs beside this one.
            unsafe { call.output().slice_mut(0, input.len()) }.copy_from_slice(input);
        }
        worker.barrier();
    }
}
