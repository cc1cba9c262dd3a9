//! The one device there is: an H200, as far as programs ask.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::{Code, answer};
use super::places::give;
use super::sms::SM_COUNT;
use crate::memory::Memory;

/// CUDA 13.0.
const DRIVER_VERSION: c_int = 13000;
const NAME: &str = "Emulated H200";
const UUID: [u8; 16] = *b"weft-emulator-00";
/// Compute capability 9.0.
pub(super) const CAPABILITY: c_int = 90;

pub(super) const MAX_THREADS: u32 = 1024;
/// Threads of a block along x, y and z.
pub(super) const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
/// Blocks of a grid along x, y and z.
pub(super) const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Shared memory of a block that needs no leave.
pub(super) const USUAL_SHARED_BYTES: u32 = 48 << 10;
/// Shared memory of a block at most.
pub(super) const MAX_SHARED_BYTES: u32 = 227 << 10;
const SHARED_BYTES_PER_SM: u32 = 228 << 10;
pub(super) const REGISTERS: u32 = 65_536;
const L2_BYTES: u32 = 60 << 20;

static IS_STARTED: AtomicBool = AtomicBool::new(false);

/// Refuses calls that come before [`cuInit`].
pub(super) fn started() -> Result<(), Code> {
    match IS_STARTED.load(Ordering::Acquire) {
        true => Ok(()),
        false => Err(Code::NotInitialized),
    }
}

/// Refuses every device but the first.
pub(super) fn check(device: c_int) -> Result<(), Code> {
    started()?;
    if device == 0 { Ok(()) } else { Err(Code::InvalidDevice) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuInit(flags: c_uint) -> Code {
    answer(|| {
        if flags != 0 {
            return Err(Code::InvalidValue);
        }
        IS_STARTED.store(true, Ordering::Release);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> Code {
    // SAFETY: the caller gives null or a place for a number.
    answer(|| unsafe { give(version, DRIVER_VERSION) })
}

/// What NVIDIA's own libraries ask the driver for among themselves. NVRTC asks once it has found a driver, does without what it is
/// refused, and would crash where it could not ask.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetExportTable(_table: *mut *const c_void, _id: *const [u8; 16]) -> Code {
    Code::NotFound
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> Code {
    answer(|| {
        started()?;
        // SAFETY: the caller gives null or a place for a number.
        unsafe { give(count, 1) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Code {
    answer(|| {
        check(ordinal)?;
        // SAFETY: the caller gives null or a place for a number.
        unsafe { give(device, ordinal) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, len: c_int, device: c_int) -> Code {
    answer(|| {
        check(device)?;
        let len = usize::try_from(len).map_err(|_| Code::InvalidValue)?;
        if name.is_null() || len == 0 {
            return Err(Code::InvalidValue);
        }
        let shown = NAME.bytes().take(len - 1).chain([0]);
        for (at, byte) in shown.enumerate() {
            // SAFETY: the caller has place for `len` bytes.
            unsafe { name.add(at).write(byte as c_char) };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> Code {
    answer(|| {
        check(device)?;
        // SAFETY: the caller gives null or a place for 16 bytes.
        unsafe { give(uuid, UUID) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> Code {
    answer(|| {
        check(device)?;
        // SAFETY: the caller gives null or a place for a number.
        unsafe { give(bytes, Memory::of_process().total_bytes() as usize) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(
    value: *mut c_int,
    attribute: c_uint,
    device: c_int,
) -> Code {
    answer(|| {
        check(device)?;
        let found = attribute_value(attribute).ok_or(Code::InvalidValue)?;
        // SAFETY: the caller gives null or a place for a number.
        unsafe { give(value, found) }
    })
}

/// An attribute by its number; `None` for those that this emulator has no value of.
fn attribute_value(attribute: c_uint) -> Option<c_int> {
    let value = match attribute {
        // Threads and blocks.
        1 => MAX_THREADS,
        2..=4 => MAX_BLOCK[attribute as usize - 2],
        5..=7 => MAX_GRID[attribute as usize - 5],
        10 => 32,
        39 => 2048,
        106 => 32,
        // Shared memory: of a block, of an SM, of a block at most, and what the system takes of each.
        8 => USUAL_SHARED_BYTES,
        81 => SHARED_BYTES_PER_SM,
        97 => MAX_SHARED_BYTES,
        111 => 1 << 10,
        // Constant memory, registers, L2 cache and memory bus.
        9 => 64 << 10,
        12 | 82 => REGISTERS,
        38 => L2_BYTES,
        37 => 6144,
        16 => SM_COUNT,
        75 => CAPABILITY as u32 / 10,
        76 => CAPABILITY as u32 % 10,
        // Copy engines.
        40 => 3,
        // What it can do: concurrent kernels, host memory, unified addresses, priorities, addresses apart from memory, clusters,
        // tensor maps.
        15 | 19 | 31 | 41 | 78 | 102 | 120 | 127 => 1,
        // What it is or has not: a limit on running times, a part of the host's chip, exclusive use, all blocks at once, MPS.
        17 | 18 | 20 | 95 | 133 => 0,
        _ => return None,
    };
    c_int::try_from(value).ok()
}
