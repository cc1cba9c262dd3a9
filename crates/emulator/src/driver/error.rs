//! What calls answer: codes, with their names and what they mean.

use std::ffi::{CStr, c_char, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::places::give;

/// The codes that this driver answers with.
macro_rules! codes {
    ($($variant:ident = $number:literal, $name:literal, $text:literal;)*) => {
        /// What a call answers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub(super) enum Code {
            $($variant = $number,)*
        }

        /// The name of a code and what it means.
        fn described(code: c_uint) -> Option<(&'static CStr, &'static CStr)> {
            match code {
                $($number => Some(($name, $text)),)*
                _ => None,
            }
        }
    };
}

codes! {
    Success = 0, c"CUDA_SUCCESS", c"no error";
    InvalidValue = 1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument";
    OutOfMemory = 2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory";
    NotInitialized = 3, c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error";
    InvalidDevice = 101, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal";
    InvalidContext = 201, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context";
    NoBinaryForGpu = 209, c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"no kernel image is available for execution on the device";
    InvalidPtx = 218, c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed";
    InvalidHandle = 400, c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle";
    IllegalState = 401, c"CUDA_ERROR_ILLEGAL_STATE", c"the operation cannot be performed in the present state";
    NotFound = 500, c"CUDA_ERROR_NOT_FOUND", c"named symbol not found";
    NotReady = 600, c"CUDA_ERROR_NOT_READY", c"device not ready";
    IllegalAddress = 700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered";
    LaunchOutOfResources = 701, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"too many resources requested for launch";
    NotSupported = 801, c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported";
    CaptureUnsupported = 900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"operation not permitted when stream is capturing";
    CaptureInvalidated = 901, c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"operation failed due to a previous error during capture";
    CaptureMerge = 902, c"CUDA_ERROR_STREAM_CAPTURE_MERGE", c"operation would result in a merge of separate capture sequences";
    CaptureUnmatched = 903, c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", c"capture was not ended in the same stream as it began";
    CaptureUnjoined = 904, c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", c"capturing stream has unjoined work";
    CaptureIsolation = 905, c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", c"dependency created on uncaptured work in another stream";
    CapturedEvent = 907, c"CUDA_ERROR_CAPTURED_EVENT", c"operation not permitted on an event last recorded in a capturing stream";
    CaptureWrongThread = 908, c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", c"attempt to terminate a thread-local capture sequence from another thread";
    InvalidClusterSize = 912, c"CUDA_ERROR_INVALID_CLUSTER_SIZE", c"cluster misconfiguration";
    InvalidResourceType = 914, c"CUDA_ERROR_INVALID_RESOURCE_TYPE", c"the resource type is invalid";
    Unknown = 999, c"CUDA_ERROR_UNKNOWN", c"unknown error";
}

/// What a call answers. A panic in it ends there, since it must not reach callers that are not Rust.
pub(super) fn answer(call: impl FnOnce() -> Result<(), Code>) -> Code {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Code::Success,
        Ok(Err(code)) => code,
        Err(_) => Code::Unknown,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(code: c_uint, text: *mut *const c_char) -> Code {
    answer(|| {
        let (_, meaning) = described(code).ok_or(Code::InvalidValue)?;
        // SAFETY: the caller gives null or a place for a pointer.
        unsafe { give(text, meaning.as_ptr()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(code: c_uint, text: *mut *const c_char) -> Code {
    answer(|| {
        let (name, _) = described(code).ok_or(Code::InvalidValue)?;
        // SAFETY: the caller gives null or a place for a pointer.
        unsafe { give(text, name.as_ptr()) }
    })
}
