//! One launch by itself, outside of any plan.

use crate::bound::BoundLaunch;
use crate::driver::{CudaError, Stream};
use crate::gpu::Gpu;
use crate::launch::Launch;
use crate::plan::operands::{OperandBinder, StepPlaces};
use crate::plan::place::{Bases, Place};

/// Gives a launch to a stream, with its inputs and outputs at these addresses.
///
/// # Safety
/// The memory at the addresses is as large as the launch expects, and nothing else uses it until the launch has ended.
pub(super) unsafe fn run(
    gpu: &Gpu,
    stream: &Stream,
    launch: Launch,
    inputs: &[u64],
    outputs: &[u64],
) -> Result<(), CudaError> {
    let bound = bind(gpu, launch, inputs, outputs)?;
    // SAFETY: the caller vouches for the memory; the kernels of a GPU stay loaded while its work runs.
    unsafe { bound.add_to(stream, false) }
}

/// A launch with its inputs and outputs at these addresses.
pub(super) fn bind(
    gpu: &Gpu,
    launch: Launch,
    inputs: &[u64],
    outputs: &[u64],
) -> Result<BoundLaunch, CudaError> {
    let places = StepPlaces {
        inputs: (0..inputs.len()).map(|index| Some(Place::Input(index))).collect(),
        outputs: (0..outputs.len()).map(|index| Some(Place::Output(index))).collect(),
        workspace_bytes: 0,
        step: 0,
    };
    let bases = Bases { inputs: inputs.to_vec(), outputs: outputs.to_vec(), ..Bases::default() };
    let planned = OperandBinder::default().bind(launch, &places);
    BoundLaunch::new(&planned, &gpu.kernels, &bases, false)
}
