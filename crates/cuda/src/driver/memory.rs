//! Memory of the GPU, and memory of the host that the GPU can copy from and to by itself.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::slice;
use std::sync::Arc;

use cudarc::driver::sys;

use super::context::Context;
use super::copy::{fill_and_wait, read_and_wait, write_and_wait};
use super::error::{CudaError, checked};

/// Memory of the GPU.
#[derive(Debug)]
pub struct DeviceBuffer {
    context: Arc<Context>,
    address: u64,
    size_bytes: usize,
}

impl DeviceBuffer {
    /// Memory that holds whatever was left there. A buffer of no bytes has address zero.
    pub fn new(context: &Arc<Context>, size_bytes: usize) -> Result<Self, CudaError> {
        let mut address = 0;
        if size_bytes > 0 {
            context.bind_to_thread()?;
            // SAFETY: a context is current, and the driver writes one address, which `drop` frees.
            unsafe { checked!(cuMemAlloc_v2(&mut address, size_bytes)) }
                .map_err(|error| error.of_allocation(size_bytes))?;
        }
        Ok(Self { context: context.clone(), address, size_bytes })
    }

    /// Memory with the given content.
    pub fn from_bytes(context: &Arc<Context>, bytes: &[u8]) -> Result<Self, CudaError> {
        let mut buffer = Self::new(context, bytes.len())?;
        buffer.write(0, bytes)?;
        Ok(buffer)
    }

    /// Memory that is zero.
    pub fn zeroed(context: &Arc<Context>, size_bytes: usize) -> Result<Self, CudaError> {
        let buffer = Self::new(context, size_bytes)?;
        // SAFETY: the range is the whole buffer, and nothing else uses it yet.
        unsafe { fill_and_wait(context, buffer.address, 0, size_bytes) }?;
        Ok(buffer)
    }

    /// Where it lies.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// How large it is.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Copies bytes into it, and waits until they are there.
    pub fn write(&mut self, offset_bytes: usize, bytes: &[u8]) -> Result<(), CudaError> {
        check_range(offset_bytes, bytes.len(), self.size_bytes)?;
        // SAFETY: the range lies inside this buffer.
        unsafe { write_and_wait(&self.context, self.address + offset_bytes as u64, bytes) }
    }

    /// Copies bytes out of it. Work that writes them must have ended before.
    pub fn read(&self, offset_bytes: usize, bytes: &mut [u8]) -> Result<(), CudaError> {
        check_range(offset_bytes, bytes.len(), self.size_bytes)?;
        // SAFETY: the range lies inside this buffer.
        unsafe { read_and_wait(&self.context, self.address + offset_bytes as u64, bytes) }
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.address != 0 && self.context.bind_to_thread().is_ok() {
            // SAFETY: the address came from `cuMemAlloc`; the driver waits for work that may still use it.
            unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}

/// Memory of the host that stays where it is, so that copies to and from the GPU need no help of the host.
#[derive(Debug)]
pub struct PinnedBuffer {
    context: Arc<Context>,
    start: *mut u8,
    size_bytes: usize,
}

// SAFETY: it owns its memory, as a `Vec` does.
unsafe impl Send for PinnedBuffer {}
// SAFETY: shared references allow reading alone.
unsafe impl Sync for PinnedBuffer {}

impl PinnedBuffer {
    /// Memory that is zero.
    pub fn new(context: &Arc<Context>, size_bytes: usize) -> Result<Self, CudaError> {
        let mut start: *mut c_void = ptr::NonNull::<u8>::dangling().as_ptr().cast();
        if size_bytes > 0 {
            context.bind_to_thread()?;
            // SAFETY: a context is current, and the driver writes one pointer, which `drop` frees.
            unsafe {
                checked!(cuMemHostAlloc(&mut start, size_bytes, sys::CU_MEMHOSTALLOC_PORTABLE))
            }
            .map_err(|error| of_host_allocation(error, size_bytes))?;
            // SAFETY: the driver gave `size_bytes` bytes, which nothing else knows of yet.
            unsafe { ptr::write_bytes(start.cast::<u8>(), 0, size_bytes) };
        }
        Ok(Self { context: context.clone(), start: start.cast(), size_bytes })
    }
}

impl Deref for PinnedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the memory is initialised and lives as long as `self`; who gives it to a copy promised not to look
        // at it meanwhile.
        unsafe { slice::from_raw_parts(self.start, self.size_bytes) }
    }
}

impl DerefMut for PinnedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and the reference is the only one.
        unsafe { slice::from_raw_parts_mut(self.start, self.size_bytes) }
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        if self.size_bytes > 0 && self.context.bind_to_thread().is_ok() {
            // SAFETY: the pointer came from `cuMemHostAlloc`.
            unsafe { sys::cuMemFreeHost(self.start.cast()) };
        }
    }
}

fn of_host_allocation(error: CudaError, size_bytes: usize) -> CudaError {
    match error {
        CudaError::OutOfDriverMemory { .. } => {
            CudaError::OutOfHostMemory { asked_bytes: size_bytes as u64 }
        }
        other => other,
    }
}

/// Refuses a range that ends past the memory it is in.
pub(super) fn check_range(offset: usize, len: usize, size: usize) -> Result<(), CudaError> {
    match offset.checked_add(len) {
        Some(end) if end <= size => Ok(()),
        _ => Err(CudaError::Refused(format!(
            "{len} bytes from byte {offset} on are not inside a buffer of {size} bytes"
        ))),
    }
}
