//! The control kernel: work that always takes the same time, unless something interferes.

use super::single_launch;
use crate::Storage;
use crate::driver::{CudaError, DeviceBuffer, GraphExec, Stream, capture};
use crate::gpu::Gpu;
use crate::kernels::convert::convert_launch;
use crate::launch::Argument;

/// Copies of this many floats, so few that the controls of all partitions fit the L2 cache together.
const FLOATS: usize = 128 << 10;

/// Copies in a row.
const COPIES: usize = 6;

/// A graph of copies inside the cache: sensitive to whoever else uses it, and to the clock.
pub(super) struct Control {
    pub(super) graph: GraphExec,
    _work: Vec<crate::bound::BoundLaunch>,
    _memory: DeviceBuffer,
}

impl Control {
    pub(super) fn new(gpu: &Gpu, stream: &Stream) -> Result<Self, CudaError> {
        let size_bytes = FLOATS * size_of::<f32>();
        let memory = DeviceBuffer::zeroed(&gpu.context, 2 * size_bytes)?;
        let ends = [memory.address(), memory.address() + size_bytes as u64];
        let bind = |index: usize| {
            let copy = convert_launch(
                Storage::F32,
                Storage::F32,
                FLOATS,
                Argument::Input(0),
                Argument::Output(0),
            );
            single_launch::bind(gpu, copy, &[ends[index % 2]], &[ends[1 - index % 2]])
        };
        let work = (0..COPIES).map(bind).collect::<Result<Vec<_>, CudaError>>()?;
        let graph = capture(stream, |stream| {
            // SAFETY: the launches and their memory are kept beside the graph.
            work.iter().try_for_each(|launch| unsafe { launch.add_to(stream, false) })
        })?;
        Ok(Self { graph, _work: work, _memory: memory })
    }
}
