//! Asking for a GPU where there may be none: an error that says why, and no panic.

use weft_cuda::driver::{Context, CudaError};
use weft_device::DeviceError;

#[test]
fn a_gpu_is_opened_or_its_absence_explained() {
    let error = match Context::open(0) {
        Ok(context) => {
            assert!(context.chip().sm_count > 0 && context.memory_bytes() > 0, "{context:?}");
            return;
        }
        Err(error) => error,
    };
    let why = error.to_string();
    match error {
        CudaError::Absent(ref absence) => {
            assert!(why.contains("libcuda.so.1") && why.contains("WEFT_CUDA_PATH"), "{why}");
            assert!(!absence.failures.is_empty(), "the loader's own words are missing: {why}");
        }
        CudaError::DriverTooOld { .. } => assert!(why.contains("or newer is needed"), "{why}"),
        CudaError::NotStarted(ref failed) => assert!(why.contains(&failed.code), "{why}"),
        CudaError::NoDevice { count: 0, .. } => {}
        other => panic!("not a reason for a GPU to be absent: {other}"),
    }
    let refused = DeviceError::from(error);
    assert!(matches!(refused, DeviceError::Unavailable { .. }), "{refused}");
}

#[test]
fn a_gpu_that_does_not_exist_is_refused() {
    assert!(Context::open(usize::MAX).is_err());
}
