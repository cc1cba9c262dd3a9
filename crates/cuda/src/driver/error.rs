//! What can go wrong between this crate and CUDA, and the check of every call's result.

use std::ffi::{CStr, c_char};
use std::fmt;

use cudarc::driver::sys::{self, CUresult};
use weft_device::DeviceError;

use crate::library::Absence;

/// A version of CUDA as its libraries number them: 13000 is 13.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

/// A kernel that does not compile, with all that says which one it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CompileFailure {
    pub template: String,
    pub entry: String,
    pub defines: Vec<(String, String)>,
    pub architecture: String,
    pub log: String,
}

impl CompileFailure {
    /// The kernel and its parameters in one line.
    pub fn kernel(&self) -> String {
        let defines: Vec<String> =
            self.defines.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!(
            "{} of {} for {} with {}",
            self.entry,
            self.template,
            self.architecture,
            defines.join(" ")
        )
    }
}

/// A call into CUDA that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FailedCall {
    pub call: &'static str,
    /// The code's name, such as `CUDA_ERROR_INVALID_VALUE`.
    pub code: String,
    pub description: String,
}

impl fmt::Display for FailedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}: {}", self.call, self.code, self.description)
    }
}

/// What can go wrong between this crate and CUDA.
#[derive(Clone, Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum CudaError {
    #[error("{0}")]
    Absent(Box<Absence>),
    #[error("the driver is too old: it is made for CUDA {found}, and {needed} or newer is needed{}", symbols_in_words(.missing))]
    DriverTooOld { found: Version, needed: Version, missing: Vec<&'static str> },
    #[error("the driver does not start: {0}")]
    NotStarted(FailedCall),
    #[error("there is no GPU {ordinal}: the driver has {count}")]
    NoDevice { ordinal: usize, count: usize },
    #[error("{0}")]
    Call(FailedCall),
    #[error(
        "not enough device memory: {asked_bytes} bytes were asked for and {free_bytes} bytes are free"
    )]
    OutOfMemory { asked_bytes: u64, free_bytes: u64 },
    /// The driver lacks something for itself, which may also be queues or addresses.
    #[error("not enough device memory for {call}: {free_bytes} bytes are free")]
    OutOfDriverMemory { call: &'static str, free_bytes: u64 },
    #[error(
        "not enough memory of the host that the GPU can use: {asked_bytes} bytes were asked for"
    )]
    OutOfHostMemory { asked_bytes: u64 },
    #[error("kernel {} does not compile:\n{}", .0.kernel(), .0.log)]
    Compile(Box<CompileFailure>),
    /// The context is dead: every later call on it fails too, whichever partition it is for.
    #[error("the GPU is lost: {0}")]
    Lost(FailedCall),
    #[error("{limit} partitions are in use, and no more are kept at once")]
    TooManyPartitions { limit: usize },
    /// A request that no GPU could satisfy; nothing was called.
    #[error("{0}")]
    Refused(String),
}

fn symbols_in_words(missing: &[&str]) -> String {
    if missing.is_empty() { String::new() } else { format!("; it lacks {}", missing.join(", ")) }
}

impl CudaError {
    /// True where nothing of this process can use the GPU any more.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_))
    }

    /// True where the driver does not take what it was given, or not in this state of the GPU.
    pub(crate) fn is_invalid_value(&self) -> bool {
        matches!(self, Self::Call(failed) if failed.code == "CUDA_ERROR_INVALID_VALUE")
    }

    /// The same error, which says what was asked for where there was too little of it.
    pub(crate) fn of_allocation(self, size_bytes: usize) -> Self {
        match self {
            Self::OutOfDriverMemory { free_bytes, .. } => {
                Self::OutOfMemory { asked_bytes: size_bytes as u64, free_bytes }
            }
            other => other,
        }
    }
}

impl From<Absence> for CudaError {
    fn from(absence: Absence) -> Self {
        Self::Absent(Box::new(absence))
    }
}

/// What the device is called in errors that name it.
const DEVICE: &str = "the CUDA device";

impl From<CudaError> for DeviceError {
    fn from(error: CudaError) -> Self {
        match error {
            CudaError::Absent(_)
            | CudaError::DriverTooOld { .. }
            | CudaError::NotStarted(_)
            | CudaError::NoDevice { .. } => {
                Self::Unavailable { device: DEVICE.to_string(), why: error.to_string() }
            }
            CudaError::OutOfMemory { asked_bytes, free_bytes } => {
                Self::OutOfMemory { asked_bytes, free_bytes }
            }
            CudaError::Compile(failure) => {
                Self::Compile { kernel: failure.kernel(), log: failure.log }
            }
            CudaError::Lost(failed) => {
                Self::Lost { device: DEVICE.to_string(), why: failed.to_string() }
            }
            CudaError::TooManyPartitions { limit } => Self::TooManyPartitions { limit },
            CudaError::Call(_)
            | CudaError::Refused(_)
            | CudaError::OutOfDriverMemory { .. }
            | CudaError::OutOfHostMemory { .. } => Self::Failed(error.to_string()),
        }
    }
}

/// Codes after which the context they came from answers every call with an error.
const LOST: &[CUresult] = &[
    CUresult::CUDA_ERROR_DEINITIALIZED,
    CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE,
    CUresult::CUDA_ERROR_ECC_UNCORRECTABLE,
    CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE,
    CUresult::CUDA_ERROR_CONTAINED,
    CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
    CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
    CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CUresult::CUDA_ERROR_ASSERT,
    CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR,
    CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
    CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
    CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE,
    CUresult::CUDA_ERROR_INVALID_PC,
    CUresult::CUDA_ERROR_LAUNCH_FAILED,
    CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK,
    CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED,
    CUresult::CUDA_ERROR_EXTERNAL_DEVICE,
    CUresult::CUDA_ERROR_UNKNOWN,
];

/// The result of `call` as a [`Result`].
pub(crate) fn check(call: &'static str, code: CUresult) -> Result<(), CudaError> {
    if code == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        return Err(CudaError::OutOfDriverMemory { call, free_bytes: free_bytes() });
    }
    let failed = FailedCall { call, code: format!("{code:?}"), description: description_of(code) };
    Err(if LOST.contains(&code) { CudaError::Lost(failed) } else { CudaError::Call(failed) })
}

/// Free memory of the GPU whose context is current; zero where there is none.
fn free_bytes() -> u64 {
    let (mut free, mut total) = (0, 0);
    // SAFETY: the driver is loaded, and writes two numbers where a context is current.
    unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) };
    free as u64
}

fn description_of(code: CUresult) -> String {
    let mut text: *const c_char = std::ptr::null();
    // SAFETY: a code came from the driver, so the driver is loaded; it writes a pointer to a constant string, or null.
    let found = unsafe { sys::cuGetErrorString(code, &mut text) };
    if found != CUresult::CUDA_SUCCESS || text.is_null() {
        return "the driver does not describe it".to_string();
    }
    // SAFETY: the driver's strings are constant and end in zero.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A call of the driver, with its result checked: `checked!(cuMemFree_v2(address))`. It must stand in an unsafe block.
macro_rules! checked {
    ($name:ident ( $($argument:expr),* $(,)? )) => {
        $crate::driver::error::check(
            stringify!($name),
            ::cudarc::driver::sys::$name($($argument),*),
        )
    };
}
pub(crate) use checked;

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> FailedCall {
        let code = "CUDA_ERROR_ILLEGAL_ADDRESS".to_string();
        FailedCall { call: "cuStreamSynchronize", code, description: "why".to_string() }
    }

    #[test]
    fn callers_can_tell_what_became_of_the_device() {
        let lost = CudaError::Lost(failed());
        assert!(lost.is_lost() && !CudaError::Call(failed()).is_lost());
        let lost = DeviceError::from(lost);
        assert!(matches!(&lost, DeviceError::Lost { why, .. } if why.contains("ILLEGAL_ADDRESS")));
        let unavailable = DeviceError::from(CudaError::NoDevice { ordinal: 3, count: 1 });
        assert!(matches!(unavailable, DeviceError::Unavailable { .. }));
        let full = CudaError::OutOfDriverMemory { call: "cuMemAlloc_v2", free_bytes: 5 };
        assert!(full.to_string().contains("for cuMemAlloc_v2"), "{full}");
        let full = full.of_allocation(9);
        let full = DeviceError::from(full);
        assert!(matches!(full, DeviceError::OutOfMemory { asked_bytes: 9, free_bytes: 5 }));
    }

    #[test]
    fn an_old_driver_is_named_with_what_it_lacks() {
        let error = CudaError::DriverTooOld {
            found: Version(12040),
            needed: Version(12080),
            missing: vec!["cuGreenCtxStreamCreate"],
        };
        assert_eq!(
            error.to_string(),
            "the driver is too old: it is made for CUDA 12.4, and 12.8 or newer is needed; \
             it lacks cuGreenCtxStreamCreate"
        );
    }

    #[test]
    fn a_kernel_that_does_not_compile_is_named_with_its_parameters() {
        let failure = CompileFailure {
            template: "gemm.cu".to_string(),
            entry: "gemm".to_string(),
            defines: vec![("TILE".to_string(), "64".to_string())],
            architecture: "sm_90".to_string(),
            log: "gemm.cu(3): error".to_string(),
        };
        let error = DeviceError::from(CudaError::Compile(Box::new(failure)));
        assert_eq!(
            error.to_string(),
            "kernel gemm of gemm.cu for sm_90 with TILE=64 does not compile:\ngemm.cu(3): error"
        );
    }
}
