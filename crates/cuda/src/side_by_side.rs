//! Several executables in one graph, each on a branch of its own: what a device makes of models that share it without a
//! scheduler. Groups are measured against it.

use weft_device::DeviceError;

use crate::driver::{CudaError, Event, GraphExec, Stream, capture};
use crate::executable::CudaExecutable;

/// A graph with a branch for each of its executables.
pub struct SideBySide {
    // It is dropped before what it was recorded from.
    graph: GraphExec,
    executables: Vec<CudaExecutable>,
    stream: Stream,
}

/// One branch: where it is recorded, and its end.
struct Branch {
    stream: Stream,
    end: Event,
}

impl SideBySide {
    /// Records executables, each of which was prepared on a partition [`beside`](crate::CudaPartition::beside) those of the
    /// others; without such memory of their own they would write over each other.
    pub fn new(executables: Vec<CudaExecutable>) -> Result<Self, DeviceError> {
        let Some(first) = executables.first() else {
            return Err(DeviceError::Failed("nothing to run side by side".to_string()));
        };
        let stream = first.stream().beside()?;
        let branch = |_: &CudaExecutable| -> Result<Branch, CudaError> {
            Ok(Branch { stream: stream.beside()?, end: Event::new(&stream)? })
        };
        let branches = executables.iter().map(branch).collect::<Result<Vec<_>, _>>()?;
        let start = Event::new(&stream)?;
        let graph = capture(&stream, |recorded| {
            start.record(recorded)?;
            for (executable, branch) in executables.iter().zip(&branches) {
                branch.stream.wait_event(&start)?;
                // SAFETY: the executables live as long as the graph, in `self`; they have arenas of their own, as they
                // were asked to, and who launches the graph launches none of them besides.
                unsafe { executable.record(&branch.stream) }?;
                branch.end.record(&branch.stream)?;
                recorded.wait_event(&branch.end)?;
            }
            Ok::<(), DeviceError>(())
        })?;
        Ok(Self { graph, executables, stream })
    }

    /// Starts all of them, on the inputs that were written last, and does not wait for their end.
    pub fn launch(&self) -> Result<(), DeviceError> {
        Ok(self.graph.launch(&self.stream)?)
    }

    /// Waits for the end of all that was launched.
    pub fn wait(&self) -> Result<(), DeviceError> {
        Ok(self.stream.synchronize()?)
    }

    /// The executables, for their inputs and outputs.
    pub fn executables(&self) -> &[CudaExecutable] {
        &self.executables
    }
}
