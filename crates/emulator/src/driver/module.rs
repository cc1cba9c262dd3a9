//! Kernels, loaded from PTX.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::capture;
use super::context;
use super::device::{
    self, CAPABILITY, MAX_SHARED_BYTES, MAX_THREADS, REGISTERS, USUAL_SHARED_BYTES,
};
use super::error::{Code, answer};
use super::handles::{Handle, Handles};
use super::places::give;
use crate::machine::{Kernel, Program};

/// What machine code starts with, which this device has no use for.
const ELF: &[u8] = b"\x7fELF";

/// Registers of a thread, at most: a kernel of small blocks could have more of them than compilers use.
const MAX_REGISTERS: u32 = 128;

/// Attributes of kernels, by their numbers.
mod attribute {
    pub(super) const MAX_THREADS_PER_BLOCK: u32 = 0;
    pub(super) const SHARED_SIZE_BYTES: u32 = 1;
    pub(super) const CONST_SIZE_BYTES: u32 = 2;
    pub(super) const LOCAL_SIZE_BYTES: u32 = 3;
    pub(super) const NUM_REGS: u32 = 4;
    pub(super) const PTX_VERSION: u32 = 5;
    pub(super) const BINARY_VERSION: u32 = 6;
    pub(super) const MAX_DYNAMIC_SHARED_SIZE_BYTES: u32 = 8;
}

struct Library {
    program: Arc<Program>,
    /// The kernels that were asked for.
    kernels: Mutex<Vec<Handle>>,
}

/// A kernel of a library.
pub(super) struct LoadedKernel {
    program: Arc<Program>,
    name: String,
    /// What launches may ask for.
    pub(super) max_dynamic_bytes: AtomicU32,
}

static LIBRARIES: Handles<Library> = Handles::new();
pub(super) static KERNELS: Handles<LoadedKernel> = Handles::new();

impl LoadedKernel {
    pub(super) fn kernel(&self) -> &Kernel {
        self.program.kernel(&self.name).expect("it was found when it was asked for")
    }

    /// As many registers as let a block of the largest size run, which nothing here takes up.
    fn registers(&self) -> u32 {
        let threads = self.kernel().max_threads.unwrap_or(MAX_THREADS).max(1);
        (REGISTERS / threads).min(MAX_REGISTERS)
    }

    fn attribute(&self, wanted: u32) -> Option<u32> {
        let kernel = self.kernel();
        Some(match wanted {
            attribute::MAX_THREADS_PER_BLOCK => kernel.max_threads.unwrap_or(MAX_THREADS),
            attribute::SHARED_SIZE_BYTES => kernel.static_shared_bytes,
            attribute::CONST_SIZE_BYTES => 0,
            attribute::LOCAL_SIZE_BYTES => kernel.local_bytes,
            attribute::NUM_REGS => self.registers(),
            attribute::PTX_VERSION | attribute::BINARY_VERSION => CAPABILITY as u32,
            attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES => {
                self.max_dynamic_bytes.load(Ordering::Relaxed)
            }
            _ => return None,
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLibraryLoadData(
    library: *mut Handle,
    code: *const c_void,
    _jit_options: *mut c_uint,
    _jit_values: *mut *mut c_void,
    _jit_count: c_uint,
    _options: *mut c_uint,
    _values: *mut *mut c_void,
    _count: c_uint,
) -> Code {
    answer(|| {
        context::current()?;
        capture::refuse_here()?;
        if library.is_null() || code.is_null() {
            return Err(Code::InvalidValue);
        }
        // SAFETY: code is PTX, which ends in zero, or machine code, whose first bytes are more than those compared up to its first zero.
        let text = unsafe { CStr::from_ptr(code.cast()) };
        if text.to_bytes().starts_with(ELF) {
            return Err(Code::NoBinaryForGpu);
        }
        let text = text.to_str().map_err(|_| Code::InvalidPtx)?;
        let program = Program::parse(text).map_err(|why| {
            eprintln!("emulator: {why}");
            Code::InvalidPtx
        })?;
        let loaded = Library { program: Arc::new(program), kernels: Mutex::default() };
        // SAFETY: the caller gives a place for a handle.
        unsafe { give(library, LIBRARIES.keep(loaded)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLibraryUnload(library: Handle) -> Code {
    answer(|| {
        let library = LIBRARIES.take(library)?;
        let kernels = library.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        kernels.iter().try_for_each(|&kernel| KERNELS.take(kernel).map(drop))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLibraryGetKernel(
    place: *mut Handle,
    library: Handle,
    name: *const c_char,
) -> Code {
    answer(|| {
        let library = LIBRARIES.get(library)?;
        if place.is_null() || name.is_null() {
            return Err(Code::InvalidValue);
        }
        // SAFETY: the caller gives a name that ends in zero.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Code::NotFound)?;
        let program = library.program.clone();
        let kernel = program.kernel(name).ok_or(Code::NotFound)?;
        let dynamic_bytes = USUAL_SHARED_BYTES.saturating_sub(kernel.static_shared_bytes);
        let max_dynamic_bytes = AtomicU32::new(dynamic_bytes);
        let handle =
            KERNELS.keep(LoadedKernel { program, name: name.to_string(), max_dynamic_bytes });
        library.kernels.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
        // SAFETY: the caller gives a place for a handle.
        unsafe { give(place, handle) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuKernelGetFunction(function: *mut Handle, kernel: Handle) -> Code {
    answer(|| {
        let context = context::current()?;
        KERNELS.get(kernel)?;
        if context.family.load(kernel) {
            // Loading waits for the device.
            capture::refuse_here()?;
        }
        // SAFETY: the caller gives null or a place for a handle.
        unsafe { give(function, kernel) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuKernelGetParamInfo(
    kernel: Handle,
    index: usize,
    offset: *mut usize,
    size: *mut usize,
) -> Code {
    answer(|| {
        let kernel = KERNELS.get(kernel)?;
        let parameter = kernel.kernel().parameters.get(index).ok_or(Code::InvalidValue)?;
        // SAFETY: the caller gives null or places for numbers.
        unsafe {
            give(offset, parameter.offset_bytes)?;
            if size.is_null() { Ok(()) } else { give(size, parameter.size_bytes) }
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuKernelGetAttribute(
    value: *mut c_int,
    attribute: c_uint,
    kernel: Handle,
    device: c_int,
) -> Code {
    answer(|| {
        device::check(device)?;
        let found = KERNELS.get(kernel)?.attribute(attribute).ok_or(Code::InvalidValue)?;
        // SAFETY: the caller gives null or a place for a number.
        unsafe { give(value, found as c_int) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuKernelSetAttribute(
    attribute: c_uint,
    value: c_int,
    kernel: Handle,
    device: c_int,
) -> Code {
    answer(|| {
        device::check(device)?;
        let kernel = KERNELS.get(kernel)?;
        if attribute != attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES {
            return Err(Code::NotSupported);
        }
        let most = MAX_SHARED_BYTES.saturating_sub(kernel.kernel().static_shared_bytes);
        let bytes = u32::try_from(value).ok().filter(|&bytes| bytes <= most);
        kernel.max_dynamic_bytes.store(bytes.ok_or(Code::InvalidValue)?, Ordering::Relaxed);
        Ok(())
    })
}
