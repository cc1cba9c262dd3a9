//! One GPU and its primary context, which all partitions share their memory and kernels with; or a context apart from it.

use std::ffi::c_int;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUdevice_attribute};

use super::error::{CudaError, Version, checked};
use super::green;
use super::startup;
use super::stream::StreamPriority;
use crate::Chip;

/// A GPU that is in use by this process.
pub struct Context {
    device: sys::CUdevice,
    /// The primary context, or one apart from it.
    raw: sys::CUcontext,
    is_apart: bool,
    /// Carries copies that the host waits for, so that they wait for no partition's work.
    transfers: sys::CUstream,
    driver: Version,
    chip: Chip,
    name: String,
    uuid: String,
    memory_bytes: u64,
    /// As the driver numbers them.
    least_priority: c_int,
    greatest_priority: c_int,
}

// SAFETY: the driver allows calls on a context and its streams from any thread.
unsafe impl Send for Context {}
// SAFETY: as above; no field changes after `open`.
unsafe impl Sync for Context {}

impl Context {
    /// How many GPUs the driver shows to this process.
    pub fn device_count() -> Result<usize, CudaError> {
        startup::start()?;
        let mut count = 0;
        // SAFETY: the driver writes one number.
        unsafe { checked!(cuDeviceGetCount(&mut count)) }?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Opens a GPU by its number among those that the driver shows.
    pub fn open(ordinal: usize) -> Result<Arc<Self>, CudaError> {
        Self::open_as(ordinal, false)
    }

    /// Opens a GPU in a context of its own, as another process would: with no memory in common, and in turns with all
    /// other contexts. Kernels that are loaded through one context run in all.
    pub fn open_apart(ordinal: usize) -> Result<Arc<Self>, CudaError> {
        Self::open_as(ordinal, true)
    }

    fn open_as(ordinal: usize, is_apart: bool) -> Result<Arc<Self>, CudaError> {
        let driver = startup::start()?;
        let count = Self::device_count()?;
        let number = c_int::try_from(ordinal).ok().filter(|_| ordinal < count);
        let number = number.ok_or(CudaError::NoDevice { ordinal, count })?;
        let mut device = 0;
        // SAFETY: the driver writes one handle.
        unsafe { checked!(cuDeviceGet(&mut device, number)) }?;
        let chip = chip(device)?;
        let (name, uuid, memory_bytes) = (name(device)?, uuid(device)?, memory_bytes(device)?);

        let raw = match is_apart {
            true => new_context(device)?,
            false => primary_context(device)?,
        };
        let mut context = Self {
            device,
            raw,
            is_apart,
            transfers: ptr::null_mut(),
            driver,
            chip,
            name,
            uuid,
            memory_bytes,
            least_priority: 0,
            greatest_priority: 0,
        };
        context.bind_to_thread()?;
        let (least, greatest) = (&mut context.least_priority, &mut context.greatest_priority);
        // SAFETY: the primary context is current, and the driver writes two numbers.
        unsafe { checked!(cuCtxGetStreamPriorityRange(least, greatest)) }?;
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the primary context is current, and the driver writes one handle, which `drop` destroys.
        unsafe { checked!(cuStreamCreate(&mut context.transfers, flags)) }?;
        Ok(Arc::new(context))
    }

    /// Makes the primary context current on this thread, as calls without a handle need one; the context of a
    /// partition that this thread has entered stays.
    pub fn bind_to_thread(&self) -> Result<(), CudaError> {
        if green::is_entered() {
            return Ok(());
        }
        self.make_current()
    }

    pub(super) fn make_current(&self) -> Result<(), CudaError> {
        // SAFETY: the context lives as long as `self`.
        unsafe { checked!(cuCtxSetCurrent(self.raw)) }
    }

    /// Waits for all work that was given to the GPU before, on all partitions.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.bind_to_thread()?;
        // SAFETY: a context is current.
        unsafe { checked!(cuCtxSynchronize()) }
    }

    /// The chip with all its SMs.
    pub fn chip(&self) -> Chip {
        self.chip
    }

    /// The product name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What identifies this GPU among all.
    pub fn uuid(&self) -> &str {
        &self.uuid
    }

    /// The size of its memory.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// The version of CUDA that the driver is made for.
    pub fn driver_version(&self) -> Version {
        self.driver
    }

    /// Memory that nothing has allocated.
    pub fn free_memory_bytes(&self) -> Result<u64, CudaError> {
        self.bind_to_thread()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: a context is current, and the driver writes two numbers.
        unsafe { checked!(cuMemGetInfo_v2(&mut free, &mut total)) }?;
        Ok(free as u64)
    }

    /// A priority as the driver numbers it.
    pub(super) fn priority_number(&self, priority: StreamPriority) -> c_int {
        match priority {
            StreamPriority::Foreground => self.greatest_priority,
            StreamPriority::Background => self.least_priority,
        }
    }

    pub(super) fn device(&self) -> sys::CUdevice {
        self.device
    }

    pub(super) fn transfers(&self) -> sys::CUstream {
        self.transfers
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.transfers.is_null() {
            // SAFETY: the stream is this context's own, and nothing else has its handle.
            unsafe { sys::cuStreamDestroy_v2(self.transfers) };
        }
        // SAFETY: `open_as` made it, or retained it once; all that uses it holds an `Arc` of `self`.
        unsafe {
            match self.is_apart {
                true => sys::cuCtxDestroy_v2(self.raw),
                false => sys::cuDevicePrimaryCtxRelease_v2(self.device),
            }
        };
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({}, {})", self.name, self.uuid)
    }
}

fn primary_context(device: sys::CUdevice) -> Result<sys::CUcontext, CudaError> {
    let mut raw = ptr::null_mut();
    // SAFETY: the driver writes one handle, which `Context` releases when it is dropped.
    unsafe { checked!(cuDevicePrimaryCtxRetain(&mut raw, device)) }?;
    Ok(raw)
}

fn new_context(device: sys::CUdevice) -> Result<sys::CUcontext, CudaError> {
    let mut raw = ptr::null_mut();
    // However many contexts there are, who waits for one looks again at once.
    let flags = sys::CUctx_flags::CU_CTX_SCHED_SPIN as u32;
    // SAFETY: without parameters it is a plain context; the driver writes one handle, which `Context` destroys when it is
    // dropped, and makes it current on this thread, as any later call does with the context that it needs.
    unsafe { checked!(cuCtxCreate_v4(&mut raw, ptr::null_mut(), flags, device)) }?;
    Ok(raw)
}

fn attribute(device: sys::CUdevice, attribute: CUdevice_attribute) -> Result<u32, CudaError> {
    let mut value = 0;
    // SAFETY: the device exists, and the driver writes one number.
    unsafe { checked!(cuDeviceGetAttribute(&mut value, attribute, device)) }?;
    Ok(u32::try_from(value).unwrap_or(0))
}

fn chip(device: sys::CUdevice) -> Result<Chip, CudaError> {
    use CUdevice_attribute as Attribute;
    let value = |wanted| attribute(device, wanted);
    let major = value(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = value(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(Chip {
        capability: 10 * major + minor,
        sm_count: value(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        shared_bytes_per_block: value(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?,
        shared_bytes_per_sm: value(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        )?,
        l2_bytes: value(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
    })
}

fn name(device: sys::CUdevice) -> Result<String, CudaError> {
    const LENGTH: usize = 256;
    let mut name = [0u8; LENGTH];
    // SAFETY: the driver writes at most `LENGTH` bytes, the last of them zero.
    unsafe { checked!(cuDeviceGetName(name.as_mut_ptr().cast(), LENGTH as c_int, device)) }?;
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(LENGTH);
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

fn uuid(device: sys::CUdevice) -> Result<String, CudaError> {
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    // SAFETY: the driver writes 16 bytes.
    unsafe { checked!(cuDeviceGetUuid_v2(&mut uuid, device)) }?;
    let hex: Vec<String> = uuid.bytes.iter().map(|&byte| format!("{:02x}", byte as u8)).collect();
    let group = |range: std::ops::Range<usize>| hex[range].concat();
    let groups = [group(0..4), group(4..6), group(6..8), group(8..10), group(10..16)];
    Ok(format!("GPU-{}", groups.join("-")))
}

fn memory_bytes(device: sys::CUdevice) -> Result<u64, CudaError> {
    let mut bytes = 0;
    // SAFETY: the driver writes one number.
    unsafe { checked!(cuDeviceTotalMem_v2(&mut bytes, device)) }?;
    Ok(bytes as u64)
}
