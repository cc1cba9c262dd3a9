//! What a step gives to a stream: launches of kernels, and calls of libraries.

use crate::bound::BoundLaunch;
use crate::driver::{CudaError, Kernel, Stream};
use crate::vendor::BoundCall;

/// One thing that a stream is given.
pub(crate) enum BoundWork {
    Launch(BoundLaunch),
    Call(BoundCall),
}

impl BoundWork {
    /// True where a launch after it may start before it has ended: kernels of libraries do not say when that is safe.
    pub(crate) fn is_launch(&self) -> bool {
        matches!(self, Self::Launch(_))
    }

    /// What is launched; none where a library does so.
    pub(crate) fn launch(&self) -> Option<&BoundLaunch> {
        match self {
            Self::Launch(launch) => Some(launch),
            Self::Call(_) => None,
        }
    }

    /// The kernel that is launched; none where a library launches its own.
    pub(crate) fn kernel(&self) -> Option<&Kernel> {
        self.launch().map(BoundLaunch::kernel)
    }

    /// Adds it to a stream, after a launch or not.
    ///
    /// # Safety
    /// The memory at its addresses lives until it has ended; where the stream is being captured, that memory and the
    /// work live as long as the graph.
    pub(crate) unsafe fn add_to(
        &self,
        stream: &Stream,
        follows_launch: bool,
    ) -> Result<(), CudaError> {
        match self {
            // SAFETY: the caller vouches for the memory.
            Self::Launch(launch) => unsafe { launch.add_to(stream, follows_launch) },
            // SAFETY: as above.
            Self::Call(call) => unsafe { call.add_to(stream) },
        }
    }
}
