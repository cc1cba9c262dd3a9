//! Allocations of the device's memory, and of the host's that the device can use.

use std::ffi::{c_uint, c_void};

use super::capture;
use super::context;
use super::error::{Code, answer};
use super::operation;
use super::places::give;
use crate::memory::{Memory, Refusal};

/// Flags of the host's memory: for all contexts, with addresses for the device, and written in one go.
const HOST_FLAGS: c_uint = 0b111;

impl From<Refusal> for Code {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full => Self::OutOfMemory,
            Refusal::Unfit => Self::InvalidValue,
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Code {
    answer(|| {
        context::current()?;
        let memory = Memory::of_process();
        // SAFETY: the caller gives null or places for numbers.
        unsafe {
            give(free, memory.free_bytes() as usize)?;
            give(total, memory.total_bytes() as usize)
        }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, size_bytes: usize) -> Code {
    answer(|| {
        context::current()?;
        capture::refuse_here()?;
        if address.is_null() {
            return Err(Code::InvalidValue);
        }
        let allocated = Memory::of_process().allocate(size_bytes as u64)?;
        // SAFETY: the caller gives a place for an address.
        unsafe { give(address, allocated) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemFree_v2(address: u64) -> Code {
    answer(|| {
        context::current()?;
        capture::refuse_here()?;
        let _device = operation::device();
        Ok(Memory::of_process().free(address)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostAlloc(
    place: *mut *mut c_void,
    size_bytes: usize,
    flags: c_uint,
) -> Code {
    answer(|| {
        context::current()?;
        capture::refuse_here()?;
        if place.is_null() || flags & !HOST_FLAGS != 0 {
            return Err(Code::InvalidValue);
        }
        let address = Memory::of_process().allocate_host(size_bytes as u64)?;
        // SAFETY: the caller gives a place for a pointer.
        unsafe { give(place, address as *mut c_void) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemFreeHost(address: *mut c_void) -> Code {
    answer(|| {
        context::current()?;
        capture::refuse_here()?;
        let _device = operation::device();
        Ok(Memory::of_process().free_host(address as u64)?)
    })
}
