//! Addresses that are reserved, and memory that is put behind them.

use std::ffi::{c_int, c_uint, c_ulonglong};

use super::context;
use super::error::{Code, answer};
use super::operation;
use super::places::{give, list, take};
use crate::memory::{GRANULARITY_BYTES, Memory};

/// Memory that stays where it is, of a device; and leave to read and write it.
const PINNED: c_uint = 1;
const OF_DEVICE: c_uint = 1;
const READ_AND_WRITE: c_uint = 3;

#[derive(Clone, Copy)]
#[repr(C)]
struct Location {
    kind: c_uint,
    id: c_int,
}

impl Location {
    fn check(self) -> Result<(), Code> {
        match (self.kind, self.id) {
            (OF_DEVICE, 0) => Ok(()),
            _ => Err(Code::InvalidValue),
        }
    }
}

/// The beginning of what programs say of the memory that they want; the rest asks for nothing that Weft needs.
#[derive(Clone, Copy)]
#[repr(C)]
struct Properties {
    kind: c_uint,
    handle_types: c_uint,
    location: Location,
}

impl Properties {
    fn check(self) -> Result<(), Code> {
        if self.kind != PINNED || self.handle_types != 0 {
            return Err(Code::InvalidValue);
        }
        self.location.check()
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Access {
    location: Location,
    flags: c_uint,
}

fn memory() -> Result<&'static Memory, Code> {
    context::current()?;
    Ok(Memory::of_process())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetAllocationGranularity(
    granularity: *mut usize,
    properties: *const Properties,
    _option: c_uint,
) -> Code {
    answer(|| {
        // SAFETY: the caller gives null or properties.
        unsafe { take(properties) }?.check()?;
        // SAFETY: the caller gives null or a place for a number.
        unsafe { give(granularity, GRANULARITY_BYTES as usize) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAddressReserve(
    address: *mut u64,
    size_bytes: usize,
    alignment_bytes: usize,
    wanted: u64,
    flags: c_ulonglong,
) -> Code {
    answer(|| {
        let memory = memory()?;
        let is_aligned = alignment_bytes as u64 <= GRANULARITY_BYTES;
        if address.is_null() || !is_aligned || wanted != 0 || flags != 0 {
            return Err(Code::InvalidValue);
        }
        let reserved = memory.reserve(size_bytes as u64)?;
        // SAFETY: the caller gives a place for an address.
        unsafe { give(address, reserved) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAddressFree(address: u64, size_bytes: usize) -> Code {
    answer(|| Ok(memory()?.unreserve(address, size_bytes as u64)?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemCreate(
    handle: *mut u64,
    size_bytes: usize,
    properties: *const Properties,
    flags: c_ulonglong,
) -> Code {
    answer(|| {
        let memory = memory()?;
        // SAFETY: the caller gives null or properties.
        unsafe { take(properties) }?.check()?;
        if handle.is_null() || flags != 0 {
            return Err(Code::InvalidValue);
        }
        let created = memory.create(size_bytes as u64)?;
        // SAFETY: the caller gives a place for a handle.
        unsafe { give(handle, created) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemRelease(handle: u64) -> Code {
    answer(|| Ok(memory()?.release(handle)?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemMap(
    address: u64,
    size_bytes: usize,
    offset_bytes: usize,
    handle: u64,
    flags: c_ulonglong,
) -> Code {
    answer(|| {
        let memory = memory()?;
        if offset_bytes != 0 || flags != 0 {
            return Err(Code::InvalidValue);
        }
        Ok(memory.map(address, size_bytes as u64, handle)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemSetAccess(
    address: u64,
    size_bytes: usize,
    wanted: *const Access,
    count: usize,
) -> Code {
    answer(|| {
        let memory = memory()?;
        // SAFETY: the caller gives null or as many as it says.
        for Access { location, flags } in unsafe { list(wanted, count) }? {
            location.check()?;
            if flags != READ_AND_WRITE {
                return Err(Code::NotSupported);
            }
        }
        Ok(memory.open(address, size_bytes as u64)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemUnmap(address: u64, size_bytes: usize) -> Code {
    answer(|| {
        let memory = memory()?;
        let _device = operation::device();
        Ok(memory.unmap(address, size_bytes as u64)?)
    })
}
