//! A kernel made of a name and a function of one call.

use crate::Worker;
use crate::plan::kernel::{Call, Kernel};
use crate::plan::site::Selected;

struct Bound<F> {
    name: &'static str,
    run: F,
}

impl<F: Fn(&Worker<'_>, &Call<'_>) + Send + Sync> Kernel for Bound<F> {
    fn name(&self) -> String {
        self.name.into()
    }

    fn run(&self, worker: &Worker<'_>, call: &Call<'_>) {
        (self.run)(worker, call);
    }
}

/// Selects a kernel without weights of its own. Every worker of a run calls `run`, and the step is the only writer of
/// its outputs: what slice-level kernels ask of their callers.
pub(super) fn bound<F>(name: &'static str, reads: Vec<usize>, run: F) -> Option<Selected>
where
    F: Fn(&Worker<'_>, &Call<'_>) + Send + Sync + 'static,
{
    Selected::new(Bound { name, run }, reads)
}
