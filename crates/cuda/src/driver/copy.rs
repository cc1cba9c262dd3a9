//! Copies between the host and the GPU, and on the GPU, in a stream, or with the host waiting for them.

use super::context::Context;
use super::error::{CudaError, checked};
use super::stream::Stream;

/// Adds a copy from the host to a stream.
///
/// # Safety
/// `size_bytes` bytes at `destination` are memory of the GPU; those at `source` stay valid and unchanged until the copy
/// has ended, or, where the stream is being captured, as long as the graph lives. Pageable memory must not be captured.
pub unsafe fn copy_to_device(
    stream: &Stream,
    destination: u64,
    source: *const u8,
    size_bytes: usize,
) -> Result<(), CudaError> {
    if size_bytes == 0 {
        return Ok(());
    }
    stream.context().bind_to_thread()?;
    // SAFETY: the caller vouches for both ranges.
    unsafe { checked!(cuMemcpyHtoDAsync_v2(destination, source.cast(), size_bytes, stream.raw())) }
}

/// Adds a copy to the host to a stream.
///
/// # Safety
/// `size_bytes` bytes at `source` are memory of the GPU; those at `destination` stay valid and are not looked at until
/// the copy has ended, or, where the stream is being captured, as long as the graph lives and runs.
pub unsafe fn copy_to_host(
    stream: &Stream,
    destination: *mut u8,
    source: u64,
    size_bytes: usize,
) -> Result<(), CudaError> {
    if size_bytes == 0 {
        return Ok(());
    }
    stream.context().bind_to_thread()?;
    // SAFETY: the caller vouches for both ranges.
    unsafe { checked!(cuMemcpyDtoHAsync_v2(destination.cast(), source, size_bytes, stream.raw())) }
}

/// Adds a copy from memory of the GPU to other memory of it to a stream.
///
/// # Safety
/// `size_bytes` bytes at `source` and at `destination` are memory of the GPU, as long as the work, or a graph of it, may
/// run, and do not overlap.
pub unsafe fn copy_on_device(
    stream: &Stream,
    destination: u64,
    source: u64,
    size_bytes: usize,
) -> Result<(), CudaError> {
    if size_bytes == 0 {
        return Ok(());
    }
    stream.context().bind_to_thread()?;
    // SAFETY: the caller vouches for both ranges.
    unsafe { checked!(cuMemcpyDtoDAsync_v2(destination, source, size_bytes, stream.raw())) }
}

/// Adds filling memory of the GPU with one byte to a stream.
///
/// # Safety
/// `size_bytes` bytes at `destination` are memory of the GPU, as long as the work, or a graph of it, may run.
pub unsafe fn fill(
    stream: &Stream,
    destination: u64,
    byte: u8,
    size_bytes: usize,
) -> Result<(), CudaError> {
    if size_bytes == 0 {
        return Ok(());
    }
    stream.context().bind_to_thread()?;
    // SAFETY: the caller vouches for the range.
    unsafe { checked!(cuMemsetD8Async(destination, byte, size_bytes, stream.raw())) }
}

/// # Safety
/// The range at `destination` is memory of the GPU.
pub(super) unsafe fn write_and_wait(
    context: &Context,
    destination: u64,
    bytes: &[u8],
) -> Result<(), CudaError> {
    if bytes.is_empty() {
        return Ok(());
    }
    context.bind_to_thread()?;
    let stream = context.transfers();
    // SAFETY: the caller vouches for the destination; `bytes` outlives the wait.
    unsafe {
        checked!(cuMemcpyHtoDAsync_v2(destination, bytes.as_ptr().cast(), bytes.len(), stream))?;
        checked!(cuStreamSynchronize(stream))
    }
}

/// # Safety
/// The range at `source` is memory of the GPU.
pub(super) unsafe fn read_and_wait(
    context: &Context,
    source: u64,
    bytes: &mut [u8],
) -> Result<(), CudaError> {
    if bytes.is_empty() {
        return Ok(());
    }
    context.bind_to_thread()?;
    let stream = context.transfers();
    // SAFETY: the caller vouches for the source; `bytes` outlives the wait.
    unsafe {
        checked!(cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), source, bytes.len(), stream))?;
        checked!(cuStreamSynchronize(stream))
    }
}

/// # Safety
/// The range at `destination` is memory of the GPU.
pub(super) unsafe fn fill_and_wait(
    context: &Context,
    destination: u64,
    byte: u8,
    size_bytes: usize,
) -> Result<(), CudaError> {
    if size_bytes == 0 {
        return Ok(());
    }
    context.bind_to_thread()?;
    let stream = context.transfers();
    // SAFETY: the caller vouches for the range.
    unsafe {
        checked!(cuMemsetD8Async(destination, byte, size_bytes, stream))?;
        checked!(cuStreamSynchronize(stream))
    }
}
