//! Memory that grows in place, so that addresses in captured graphs stay right.

use std::sync::Arc;

use cudarc::driver::sys::{
    self, CUmemAccess_flags, CUmemAllocationGranularity_flags, CUmemAllocationType,
    CUmemLocationType,
};

use super::context::Context;
use super::copy::{read_and_wait, write_and_wait};
use super::error::{CudaError, checked};
use super::memory::check_range;

/// A range of addresses of the GPU whose beginning has memory behind it.
#[derive(Debug)]
pub struct GrowableBuffer {
    context: Arc<Context>,
    address: u64,
    reserved_bytes: usize,
    granularity_bytes: usize,
    /// Sizes of the pieces of memory, in order of address.
    pieces: Vec<usize>,
}

impl GrowableBuffer {
    /// Reserves addresses, and no memory yet; it can grow to `reserved_bytes`.
    pub fn reserve(context: &Arc<Context>, reserved_bytes: usize) -> Result<Self, CudaError> {
        context.bind_to_thread()?;
        let properties = properties(context);
        let mut granularity_bytes = 0;
        let option = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
        // SAFETY: the driver reads the properties and writes one number.
        unsafe {
            checked!(cuMemGetAllocationGranularity(&mut granularity_bytes, &properties, option))
        }?;
        let reserved_bytes = reserved_bytes.max(1).next_multiple_of(granularity_bytes);
        let mut address = 0;
        // SAFETY: the driver writes one address, which `drop` frees.
        unsafe { checked!(cuMemAddressReserve(&mut address, reserved_bytes, 0, 0, 0)) }
            .map_err(|error| error.of_allocation(reserved_bytes))?;
        Ok(Self {
            context: context.clone(),
            address,
            reserved_bytes,
            granularity_bytes,
            pieces: Vec::new(),
        })
    }

    /// Puts memory behind at least the first `size_bytes` addresses. What is there stays there; where there is not
    /// enough memory, nothing changes.
    pub fn grow_to(&mut self, size_bytes: usize) -> Result<(), CudaError> {
        let present = self.size_bytes();
        if size_bytes <= present {
            return Ok(());
        }
        if size_bytes > self.reserved_bytes {
            return Err(CudaError::Refused(format!(
                "an arena of at most {} bytes cannot grow to {size_bytes}",
                self.reserved_bytes
            )));
        }
        let added = (size_bytes - present).next_multiple_of(self.granularity_bytes);
        self.context.bind_to_thread()?;
        map_memory(&self.context, self.address + present as u64, added)
            .map_err(|error| error.of_allocation(added))?;
        self.pieces.push(added);
        Ok(())
    }

    /// Where it starts; this never changes.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// How much of it has memory behind it.
    pub fn size_bytes(&self) -> usize {
        self.pieces.iter().sum()
    }

    /// How far it can grow.
    pub fn reserved_bytes(&self) -> usize {
        self.reserved_bytes
    }

    /// Copies bytes into it, and waits until they are there.
    pub fn write(&mut self, offset_bytes: usize, bytes: &[u8]) -> Result<(), CudaError> {
        check_range(offset_bytes, bytes.len(), self.size_bytes())?;
        // SAFETY: the range has memory behind it.
        unsafe { write_and_wait(&self.context, self.address + offset_bytes as u64, bytes) }
    }

    /// Copies bytes out of it. Work that writes them must have ended before.
    pub fn read(&self, offset_bytes: usize, bytes: &mut [u8]) -> Result<(), CudaError> {
        check_range(offset_bytes, bytes.len(), self.size_bytes())?;
        // SAFETY: the range has memory behind it.
        unsafe { read_and_wait(&self.context, self.address + offset_bytes as u64, bytes) }
    }
}

impl Drop for GrowableBuffer {
    fn drop(&mut self) {
        // Taking memory away does not wait for work that uses it, as freeing does.
        let _ = self.context.synchronize();
        let mut address = self.address;
        for &piece in &self.pieces {
            // SAFETY: the piece was mapped as a whole, and no work uses it any more.
            unsafe { sys::cuMemUnmap(address, piece) };
            address += piece as u64;
        }
        // SAFETY: the range was reserved as a whole, and nothing is mapped in it any more.
        unsafe { sys::cuMemAddressFree(self.address, self.reserved_bytes) };
    }
}

/// Memory of this GPU.
fn location(context: &Context) -> sys::CUmemLocation {
    sys::CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: context.device(),
    }
}

fn properties(context: &Context) -> sys::CUmemAllocationProp {
    // SAFETY: all fields are numbers and pointers, for which zero is valid and means "nothing special".
    let mut properties: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = location(context);
    properties
}

/// Puts new memory behind a range of addresses, or leaves everything as it was.
fn map_memory(context: &Context, address: u64, size_bytes: usize) -> Result<(), CudaError> {
    let mut memory = 0;
    // SAFETY: the driver reads the properties and writes one handle, which is released below.
    unsafe { checked!(cuMemCreate(&mut memory, size_bytes, &properties(context), 0)) }?;
    // SAFETY: the range is reserved, and nothing is mapped in it.
    let mapped = unsafe { checked!(cuMemMap(address, size_bytes, 0, memory, 0)) };
    // SAFETY: the mapping, where there is one, keeps the memory.
    unsafe { sys::cuMemRelease(memory) };
    mapped?;
    let access = sys::CUmemAccessDesc {
        location: location(context),
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    // SAFETY: the range was just mapped.
    unsafe { checked!(cuMemSetAccess(address, size_bytes, &access, 1)) }.inspect_err(|_| {
        // SAFETY: the range was just mapped as a whole, and nothing uses it.
        unsafe { sys::cuMemUnmap(address, size_bytes) };
    })
}
