//! Streams: queues of work for the GPU, of the whole of it or of one partition.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUresult, CUstream_flags};

use super::context::Context;
use super::error::{CudaError, check, checked};
use super::event::Event;
use super::green::{Entered, GreenContext, Home};

/// Whose blocks go first on an SM that two streams want. Those that run already end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamPriority {
    /// Before those of the background.
    Foreground,
    /// When no block of the foreground waits.
    Background,
}

/// A queue of work. What is in it runs in order, on the SMs of the partition it belongs to.
#[derive(Debug)]
pub struct Stream {
    raw: sys::CUstream,
    home: Home,
    priority: StreamPriority,
}

// SAFETY: the driver allows calls on a stream from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above; no field changes.
unsafe impl Sync for Stream {}

/// Work waits for no other stream unless it is told to.
const FLAGS: u32 = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;

impl Stream {
    /// A stream whose work may run on every SM.
    pub fn new(context: &Arc<Context>) -> Result<Self, CudaError> {
        Self::over_all(context, StreamPriority::Foreground)
    }

    /// The same, with a priority.
    pub fn over_all(context: &Arc<Context>, priority: StreamPriority) -> Result<Self, CudaError> {
        Self::at(Home::Whole(context.clone()), priority)
    }

    /// Who goes first.
    pub fn priority(&self) -> StreamPriority {
        self.priority
    }

    /// The SMs that its work may run on.
    pub fn sm_count(&self) -> u32 {
        match &self.home {
            Home::Whole(context) => context.chip().sm_count,
            Home::Part(green) => green.sm_count(),
        }
    }

    /// A stream whose work runs on the SMs of a green context.
    pub fn in_green_context(
        green: &Arc<GreenContext>,
        priority: StreamPriority,
    ) -> Result<Self, CudaError> {
        Self::at(Home::Part(green.clone()), priority)
    }

    /// Another stream of the same partition and priority.
    pub fn beside(&self) -> Result<Self, CudaError> {
        Self::at(self.home.clone(), self.priority)
    }

    /// Another stream of the same partition, with a priority.
    pub fn beside_at(&self, priority: StreamPriority) -> Result<Self, CudaError> {
        Self::at(self.home.clone(), priority)
    }

    fn at(home: Home, priority: StreamPriority) -> Result<Self, CudaError> {
        let number = home.context().priority_number(priority);
        let mut raw = ptr::null_mut();
        match &home {
            Home::Whole(_) => {
                let _entered = home.enter()?;
                // SAFETY: the primary context is current, and the driver writes one handle, which `drop` destroys.
                unsafe { checked!(cuStreamCreateWithPriority(&mut raw, FLAGS, number)) }?;
            }
            Home::Part(green) => {
                // SAFETY: the green context lives, and the driver writes one handle, which `drop` destroys.
                unsafe { checked!(cuGreenCtxStreamCreate(&mut raw, green.raw(), FLAGS, number)) }?;
            }
        }
        Ok(Self { raw, home, priority })
    }

    /// The GPU it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        self.home.context()
    }

    /// Makes the context that the stream belongs to current on this thread, until the guard is dropped.
    pub fn enter(&self) -> Result<Entered<'_>, CudaError> {
        self.home.enter()
    }

    /// Waits until all its work has ended.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.context().bind_to_thread()?;
        // SAFETY: the stream lives.
        unsafe { checked!(cuStreamSynchronize(self.raw)) }
    }

    /// True where all its work has ended.
    pub fn is_idle(&self) -> Result<bool, CudaError> {
        self.context().bind_to_thread()?;
        // SAFETY: the stream lives.
        match unsafe { sys::cuStreamQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => check("cuStreamQuery", code).map(|()| true),
        }
    }

    /// Work that is added from now on starts after what the event marks, whichever stream that is on.
    pub fn wait_event(&self, event: &Event) -> Result<(), CudaError> {
        self.context().bind_to_thread()?;
        // SAFETY: the stream and the event live.
        unsafe { checked!(cuStreamWaitEvent(self.raw, event.raw(), 0)) }
    }

    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    pub(crate) fn raw(&self) -> sys::CUstream {
        self.raw
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the handle is this stream's own; the driver frees it when its work has ended. Fields are dropped
        // after it, so the green context outlives it.
        unsafe { sys::cuStreamDestroy_v2(self.raw) };
    }
}
