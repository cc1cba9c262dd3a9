//! cuBLASLt: its functions, and its handle for one GPU.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use cudarc::cublaslt::sys::{
    cublasComputeType_t, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t,
    cublasLtMatmulDescAttributes_t, cublasLtMatmulHeuristicResult_t, cublasLtMatmulPreference_t,
    cublasLtMatmulPreferenceAttributes_t, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t,
    cudaDataType_t, cudaStream_t,
};

use super::functions::{Code, constant_text, failed, functions};
use crate::driver::{Context, CudaError};
use crate::library::{CudaLibrary, Libraries};

functions! {
    /// What is called of cuBLASLt.
    struct Functions of CudaLibrary::CublasLt;
    create: fn(*mut cublasLtHandle_t) -> Code = "cublasLtCreate";
    destroy: fn(cublasLtHandle_t) -> Code = "cublasLtDestroy";
    status_name: fn(Code) -> *const c_char = "cublasLtGetStatusName";
    status_text: fn(Code) -> *const c_char = "cublasLtGetStatusString";
    create_description: fn(*mut cublasLtMatmulDesc_t, cublasComputeType_t, cudaDataType_t) -> Code
        = "cublasLtMatmulDescCreate";
    destroy_description: fn(cublasLtMatmulDesc_t) -> Code = "cublasLtMatmulDescDestroy";
    set_description: fn(
        cublasLtMatmulDesc_t,
        cublasLtMatmulDescAttributes_t,
        *const c_void,
        usize,
    ) -> Code = "cublasLtMatmulDescSetAttribute";
    create_layout: fn(*mut cublasLtMatrixLayout_t, cudaDataType_t, u64, u64, i64) -> Code
        = "cublasLtMatrixLayoutCreate";
    destroy_layout: fn(cublasLtMatrixLayout_t) -> Code = "cublasLtMatrixLayoutDestroy";
    set_layout: fn(
        cublasLtMatrixLayout_t,
        cublasLtMatrixLayoutAttribute_t,
        *const c_void,
        usize,
    ) -> Code = "cublasLtMatrixLayoutSetAttribute";
    create_preference: fn(*mut cublasLtMatmulPreference_t) -> Code
        = "cublasLtMatmulPreferenceCreate";
    destroy_preference: fn(cublasLtMatmulPreference_t) -> Code = "cublasLtMatmulPreferenceDestroy";
    set_preference: fn(
        cublasLtMatmulPreference_t,
        cublasLtMatmulPreferenceAttributes_t,
        *const c_void,
        usize,
    ) -> Code = "cublasLtMatmulPreferenceSetAttribute";
    suggest: fn(
        cublasLtHandle_t,
        cublasLtMatmulDesc_t,
        cublasLtMatrixLayout_t,
        cublasLtMatrixLayout_t,
        cublasLtMatrixLayout_t,
        cublasLtMatrixLayout_t,
        cublasLtMatmulPreference_t,
        c_int,
        *mut cublasLtMatmulHeuristicResult_t,
        *mut c_int,
    ) -> Code = "cublasLtMatmulAlgoGetHeuristic";
    multiply: fn(
        cublasLtHandle_t,
        cublasLtMatmulDesc_t,
        *const c_void,
        *const c_void,
        cublasLtMatrixLayout_t,
        *const c_void,
        cublasLtMatrixLayout_t,
        *const c_void,
        *const c_void,
        cublasLtMatrixLayout_t,
        *mut c_void,
        cublasLtMatrixLayout_t,
        *const cublasLtMatmulAlgo_t,
        *mut c_void,
        usize,
        cudaStream_t,
    ) -> Code = "cublasLtMatmul";
}

/// cuBLASLt on one GPU. The library allows calls with one handle from several threads at once.
pub(super) struct CublasLt {
    pub(super) functions: Functions,
    pub(super) raw: cublasLtHandle_t,
    pub(super) context: Arc<Context>,
}

// SAFETY: the library allows calls with the handle from any thread.
unsafe impl Send for CublasLt {}
// SAFETY: as above; no field changes.
unsafe impl Sync for CublasLt {}

impl CublasLt {
    pub(super) fn open(context: &Arc<Context>) -> Result<Self, CudaError> {
        let library = Libraries::of_process().open(CudaLibrary::CublasLt)?;
        // SAFETY: the types are those of cuBLASLt's documentation, which have not changed since its version 11.
        let functions = unsafe { Functions::load(library) }?;
        let mut opened = Self { functions, raw: ptr::null_mut(), context: context.clone() };
        context.bind_to_thread()?;
        // SAFETY: a context is current, and the library writes one handle, which `drop` destroys.
        let created = unsafe { (opened.functions.create)(&mut opened.raw) };
        opened.check("cublasLtCreate", created)?;
        Ok(opened)
    }

    /// The result of `call` as a [`Result`].
    pub(super) fn check(&self, call: &'static str, code: Code) -> Result<(), CudaError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the library returns constant strings that end in zero, for every number.
        let (name, text) = unsafe {
            let name = constant_text((self.functions.status_name)(code));
            (name, constant_text((self.functions.status_text)(code)))
        };
        Err(failed(call, name, text))
    }
}

impl Drop for CublasLt {
    fn drop(&mut self) {
        if !self.raw.is_null() && self.context.bind_to_thread().is_ok() {
            // SAFETY: the handle is this library's own; all that uses it holds an `Arc` of `self`.
            unsafe { (self.functions.destroy)(self.raw) };
        }
    }
}
