//! Kernels as the driver has them: machine code that is loaded once, and runs in every partition.

use std::ffi::CString;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUfunction_attribute};

use super::context::Context;
use super::error::{CudaError, checked};

/// More parameters than any kernel has: a bound on asking the driver for them.
const MAX_PARAMETERS: usize = 1024;

/// A kernel that can be launched in any partition of its GPU.
pub struct Kernel {
    library: sys::CUlibrary,
    raw: sys::CUkernel,
    name: String,
    parameter_sizes: Vec<usize>,
    registers: u32,
    local_bytes: u32,
    static_shared_bytes: u32,
    context: Arc<Context>,
}

// SAFETY: the driver allows calls on a library and its kernels from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above; no field changes after `load`.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// Loads machine code for this GPU now, and not at the first launch, and finds the kernel `entry` in it. The driver waits for all
    /// that the GPU has been given.
    pub fn load(context: &Arc<Context>, code: &[u8], entry: &str) -> Result<Self, CudaError> {
        let name = CString::new(entry)
            .map_err(|_| CudaError::Refused(format!("'{entry}' is no name of a kernel")))?;
        context.bind_to_thread()?;
        let mut library = ptr::null_mut();
        // SAFETY: the driver copies the code, whose own header says how long it is, and writes one handle, which
        // `drop` unloads.
        unsafe {
            checked!(cuLibraryLoadData(
                &mut library,
                code.as_ptr().cast(),
                ptr::null_mut(),
                ptr::null_mut(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
                0,
            ))
        }?;
        let mut kernel = Self {
            library,
            raw: ptr::null_mut(),
            name: entry.to_string(),
            parameter_sizes: Vec::new(),
            registers: 0,
            local_bytes: 0,
            static_shared_bytes: 0,
            context: context.clone(),
        };
        // SAFETY: the library is loaded, the name ends in zero, and the driver writes one handle.
        unsafe { checked!(cuLibraryGetKernel(&mut kernel.raw, library, name.as_ptr())) }?;
        kernel.parameter_sizes = kernel.ask_for_parameter_sizes();
        kernel.registers = kernel.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?;
        kernel.local_bytes =
            kernel.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?;
        kernel.static_shared_bytes =
            kernel.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        kernel.allow_all_shared_memory()?;
        kernel.load_into_current()?;
        Ok(kernel)
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Registers of one thread.
    pub fn registers(&self) -> u32 {
        self.registers
    }

    /// Bytes of one thread that did not fit into registers, or are arrays.
    pub fn local_bytes(&self) -> u32 {
        self.local_bytes
    }

    /// Shared memory of one block that is not asked for at launch.
    pub fn static_shared_bytes(&self) -> u32 {
        self.static_shared_bytes
    }

    /// The size of each parameter.
    pub fn parameter_sizes(&self) -> &[usize] {
        &self.parameter_sizes
    }

    /// The GPU it is loaded onto.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Loads it into the context that is current on this thread.
    pub(super) fn load_into_current(&self) -> Result<(), CudaError> {
        let mut function = ptr::null_mut();
        // SAFETY: the library is loaded, and the driver writes one handle, which it owns.
        unsafe { checked!(cuKernelGetFunction(&mut function, self.raw)) }
    }

    /// The handle as launches take it: the driver accepts kernels in place of functions.
    pub(super) fn as_function(&self) -> sys::CUfunction {
        self.raw.cast()
    }

    fn ask_for_parameter_sizes(&self) -> Vec<usize> {
        (0..MAX_PARAMETERS)
            .map_while(|index| {
                let (mut offset, mut size) = (0, 0);
                // SAFETY: the kernel lives, and the driver writes two numbers, or refuses an index past the last.
                let found = unsafe {
                    checked!(cuKernelGetParamInfo(self.raw, index, &mut offset, &mut size))
                };
                found.ok().map(|()| size)
            })
            .collect()
    }

    fn attribute(&self, attribute: CUfunction_attribute) -> Result<u32, CudaError> {
        let mut value = 0;
        let device = self.context.device();
        // SAFETY: the kernel lives, and the driver writes one number.
        unsafe { checked!(cuKernelGetAttribute(&mut value, attribute, self.raw, device)) }?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// Lets launches ask for as much shared memory as the chip has, not only for what every chip has.
    fn allow_all_shared_memory(&self) -> Result<(), CudaError> {
        let most = self.context.chip().shared_bytes_per_block;
        let dynamic = most.saturating_sub(self.static_shared_bytes) as i32;
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the kernel lives.
        unsafe {
            checked!(cuKernelSetAttribute(attribute, dynamic, self.raw, self.context.device()))
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: who launches a kernel promised to hold it until the launch has ended.
            unsafe { sys::cuLibraryUnload(self.library) };
        }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({}, {} registers)", self.name, self.registers)
    }
}
