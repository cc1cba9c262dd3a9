//! Starting the driver, once per process.

use std::env;
use std::sync::OnceLock;

use super::error::{CudaError, Version, checked};
use crate::library::{CudaLibrary, Libraries};

/// The oldest driver that has all that is called.
const OLDEST_DRIVER: Version = Version(12080);

/// The newest of the functions that are called, in the order in which drivers came to have them. A driver that has
/// these has the older ones too.
const NEWEST_FUNCTIONS: &[&str] = &[
    "cuLibraryLoadData",
    "cuTensorMapEncodeTiled",
    "cuGreenCtxCreate",
    "cuDevSmResourceSplitByCount",
    "cuKernelGetParamInfo",
    "cuGreenCtxStreamCreate",
    "cuEventElapsedTime_v2",
];

/// How many hardware queues streams are spread over. With fewer, a partition's work may wait behind another's.
const CONNECTIONS: (&str, &str) = ("CUDA_DEVICE_MAX_CONNECTIONS", "32");

/// Loads and starts the driver; the driver's version.
pub(super) fn start() -> Result<Version, CudaError> {
    static STARTED: OnceLock<Result<Version, CudaError>> = OnceLock::new();
    STARTED.get_or_init(start_once).clone()
}

fn start_once() -> Result<Version, CudaError> {
    let driver = Libraries::of_process().open(CudaLibrary::Driver)?;
    let has_version = driver.has("cuDriverGetVersion") && driver.has("cuGetErrorString");
    let found = if has_version { version()? } else { Version(0) };
    let missing: Vec<&str> =
        NEWEST_FUNCTIONS.iter().copied().filter(|function| !driver.has(function)).collect();
    if found < OLDEST_DRIVER || !missing.is_empty() {
        return Err(CudaError::DriverTooOld { found, needed: OLDEST_DRIVER, missing });
    }
    let (name, value) = CONNECTIONS;
    if env::var_os(name).is_none() {
        // SAFETY: it happens once, before the driver starts its threads. A thread of this process that reads the
        // environment through the C library at this very moment is the risk that remains.
        unsafe { env::set_var(name, value) };
    }
    // SAFETY: the function takes no pointers.
    unsafe { checked!(cuInit(0)) }.map_err(|error| match error {
        CudaError::Call(failed) | CudaError::Lost(failed) => CudaError::NotStarted(failed),
        other => other,
    })?;
    Ok(found)
}

fn version() -> Result<Version, CudaError> {
    let mut version = 0;
    // SAFETY: the driver writes one number.
    unsafe { checked!(cuDriverGetVersion(&mut version)) }?;
    Ok(Version(u32::try_from(version).unwrap_or(0)))
}
