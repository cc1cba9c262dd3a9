//! What commands that tune kernels, or use tuned ones, have in common.

mod contest;
mod kernel_set;
mod options;
mod selection;

pub(crate) use contest::{Contest, ContestSettings, Contestant, Ring};
pub(crate) use kernel_set::KernelSet;
pub(crate) use options::{TunedKernels, TuningOptions};
pub(crate) use selection::ModelSelection;
