//! Events: marks in a stream, to wait for and to measure between.

use std::ptr;

use cudarc::driver::sys::{self, CUevent_flags, CUresult};

use super::error::{CudaError, check, checked};
use super::green::Home;
use super::stream::Stream;

/// A mark that can be put into the streams of one partition.
#[derive(Debug)]
pub struct Event {
    raw: sys::CUevent,
    home: Home,
}

// SAFETY: the driver allows calls on an event from any thread.
unsafe impl Send for Event {}
// SAFETY: as above; no field changes.
unsafe impl Sync for Event {}

impl Event {
    /// An event to wait for, of the partition that `stream` belongs to.
    pub fn new(stream: &Stream) -> Result<Self, CudaError> {
        Self::with_flags(stream, CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    /// An event that also notes when it was reached, of the partition that `stream` belongs to.
    pub fn with_timing(stream: &Stream) -> Result<Self, CudaError> {
        Self::with_flags(stream, CUevent_flags::CU_EVENT_DEFAULT)
    }

    /// An event to wait for without keeping a core busy, of the partition that `stream` belongs to.
    pub fn to_sleep_for(stream: &Stream) -> Result<Self, CudaError> {
        let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32
            | CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32;
        Self::with_raw_flags(stream, flags)
    }

    fn with_flags(stream: &Stream, flags: CUevent_flags) -> Result<Self, CudaError> {
        Self::with_raw_flags(stream, flags as u32)
    }

    fn with_raw_flags(stream: &Stream, flags: u32) -> Result<Self, CudaError> {
        // The driver takes an event to belong to the context that is current when it is made, and it can be recorded
        // in that context's streams alone.
        let _entered = stream.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the stream's context is current, and the driver writes one handle, which `drop` destroys.
        unsafe { checked!(cuEventCreate(&mut raw, flags)) }?;
        Ok(Self { raw, home: stream.home().clone() })
    }

    /// Marks the end of what is in the stream now.
    pub fn record(&self, stream: &Stream) -> Result<(), CudaError> {
        self.home.context().bind_to_thread()?;
        // SAFETY: the event and the stream live.
        unsafe { checked!(cuEventRecord(self.raw, stream.raw())) }
    }

    /// True where the mark was reached, or was never put into a stream.
    pub fn is_reached(&self) -> Result<bool, CudaError> {
        self.home.context().bind_to_thread()?;
        // SAFETY: the event lives.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => check("cuEventQuery", code).map(|()| true),
        }
    }

    /// Waits until the mark is reached.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.home.context().bind_to_thread()?;
        // SAFETY: the event lives.
        unsafe { checked!(cuEventSynchronize(self.raw)) }
    }

    /// The time from an earlier mark to this one; both were reached, and both note when.
    pub fn elapsed_us_since(&self, earlier: &Event) -> Result<f64, CudaError> {
        self.home.context().bind_to_thread()?;
        let mut milliseconds = 0.0f32;
        // SAFETY: both events live, and the driver writes one number.
        unsafe { checked!(cuEventElapsedTime_v2(&mut milliseconds, earlier.raw, self.raw)) }?;
        Ok(f64::from(milliseconds) * 1e3)
    }

    pub(super) fn raw(&self) -> sys::CUevent {
        self.raw
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle is this event's own; the driver frees it when it has been reached.
        // Fields are dropped after it, so the context it belongs to outlives it.
        unsafe { sys::cuEventDestroy_v2(self.raw) };
    }
}
