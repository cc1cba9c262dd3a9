//! cuDNN: its functions, and its handle for one GPU.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::cudnn::sys::{
    cudaStream_t, cudnnActivationDescriptor_t, cudnnActivationMode_t, cudnnConvolutionDescriptor_t,
    cudnnConvolutionFwdAlgo_t, cudnnConvolutionMode_t, cudnnDataType_t, cudnnFilterDescriptor_t,
    cudnnHandle_t, cudnnMathType_t, cudnnNanPropagation_t, cudnnTensorDescriptor_t,
    cudnnTensorFormat_t,
};

use super::functions::{Code, constant_text, failed, functions};
use crate::driver::{Context, CudaError, Stream};
use crate::library::{CudaLibrary, Libraries};

functions! {
    /// What is called of cuDNN.
    struct Functions of CudaLibrary::Cudnn;
    create: fn(*mut cudnnHandle_t) -> Code = "cudnnCreate";
    destroy: fn(cudnnHandle_t) -> Code = "cudnnDestroy";
    set_stream: fn(cudnnHandle_t, cudaStream_t) -> Code = "cudnnSetStream";
    status_text: fn(Code) -> *const c_char = "cudnnGetErrorString";
    create_tensor: fn(*mut cudnnTensorDescriptor_t) -> Code = "cudnnCreateTensorDescriptor";
    destroy_tensor: fn(cudnnTensorDescriptor_t) -> Code = "cudnnDestroyTensorDescriptor";
    set_tensor: fn(
        cudnnTensorDescriptor_t,
        cudnnTensorFormat_t,
        cudnnDataType_t,
        c_int,
        c_int,
        c_int,
        c_int,
    ) -> Code = "cudnnSetTensor4dDescriptor";
    create_filter: fn(*mut cudnnFilterDescriptor_t) -> Code = "cudnnCreateFilterDescriptor";
    destroy_filter: fn(cudnnFilterDescriptor_t) -> Code = "cudnnDestroyFilterDescriptor";
    set_filter: fn(
        cudnnFilterDescriptor_t,
        cudnnDataType_t,
        cudnnTensorFormat_t,
        c_int,
        c_int,
        c_int,
        c_int,
    ) -> Code = "cudnnSetFilter4dDescriptor";
    create_convolution: fn(*mut cudnnConvolutionDescriptor_t) -> Code
        = "cudnnCreateConvolutionDescriptor";
    destroy_convolution: fn(cudnnConvolutionDescriptor_t) -> Code
        = "cudnnDestroyConvolutionDescriptor";
    set_convolution: fn(
        cudnnConvolutionDescriptor_t,
        c_int,
        c_int,
        c_int,
        c_int,
        c_int,
        c_int,
        cudnnConvolutionMode_t,
        cudnnDataType_t,
    ) -> Code = "cudnnSetConvolution2dDescriptor";
    set_math: fn(cudnnConvolutionDescriptor_t, cudnnMathType_t) -> Code
        = "cudnnSetConvolutionMathType";
    create_activation: fn(*mut cudnnActivationDescriptor_t) -> Code
        = "cudnnCreateActivationDescriptor";
    destroy_activation: fn(cudnnActivationDescriptor_t) -> Code
        = "cudnnDestroyActivationDescriptor";
    set_activation: fn(
        cudnnActivationDescriptor_t,
        cudnnActivationMode_t,
        cudnnNanPropagation_t,
        f64,
    ) -> Code = "cudnnSetActivationDescriptor";
    workspace_size: fn(
        cudnnHandle_t,
        cudnnTensorDescriptor_t,
        cudnnFilterDescriptor_t,
        cudnnConvolutionDescriptor_t,
        cudnnTensorDescriptor_t,
        cudnnConvolutionFwdAlgo_t,
        *mut usize,
    ) -> Code = "cudnnGetConvolutionForwardWorkspaceSize";
    convolve: fn(
        cudnnHandle_t,
        *const c_void,
        cudnnTensorDescriptor_t,
        *const c_void,
        cudnnFilterDescriptor_t,
        *const c_void,
        cudnnConvolutionDescriptor_t,
        cudnnConvolutionFwdAlgo_t,
        *mut c_void,
        usize,
        *const c_void,
        cudnnTensorDescriptor_t,
        *const c_void,
        cudnnTensorDescriptor_t,
        *const c_void,
        cudnnActivationDescriptor_t,
        cudnnTensorDescriptor_t,
        *mut c_void,
    ) -> Code = "cudnnConvolutionBiasActivationForward";
}

/// cuDNN on one GPU.
pub(super) struct Cudnn {
    pub(super) functions: Functions,
    /// One thread at a time may use it.
    handle: Mutex<Handle>,
    pub(super) context: Arc<Context>,
}

/// The library's handle.
pub(super) struct Handle(cudnnHandle_t);

// SAFETY: the library allows calls with the handle from any thread, one at a time.
unsafe impl Send for Handle {}

impl Handle {
    pub(super) fn raw(&self) -> cudnnHandle_t {
        self.0
    }
}

impl Cudnn {
    pub(super) fn open(context: &Arc<Context>) -> Result<Self, CudaError> {
        let libraries = Libraries::of_process();
        // cuDNN asks the loader for cuBLAS by name, which finds what is open already; where it is absent, cuDNN says so.
        let _ = libraries.open(CudaLibrary::Cublas);
        let library = libraries.open(CudaLibrary::Cudnn)?;
        // SAFETY: the types are those of cuDNN's documentation, which have not changed since its version 7.
        let functions = unsafe { Functions::load(library) }?;
        let handle = Mutex::new(Handle(ptr::null_mut()));
        let opened = Self { functions, handle, context: context.clone() };
        context.bind_to_thread()?;
        // SAFETY: a context is current, and the library writes one handle, which `drop` destroys.
        let created = unsafe { (opened.functions.create)(&mut opened.lock().0) };
        opened.check("cudnnCreate", created)?;
        Ok(opened)
    }

    /// The handle, for this thread alone.
    pub(super) fn lock(&self) -> MutexGuard<'_, Handle> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handle, for this thread alone, with its work going to a stream.
    pub(super) fn lock_in(&self, stream: &Stream) -> Result<MutexGuard<'_, Handle>, CudaError> {
        let handle = self.lock();
        // SAFETY: the handle and the stream live; every use of the handle for work names its stream anew.
        let code = unsafe { (self.functions.set_stream)(handle.raw(), stream.raw().cast()) };
        self.check("cudnnSetStream", code)?;
        Ok(handle)
    }

    /// The result of `call` as a [`Result`].
    pub(super) fn check(&self, call: &'static str, code: Code) -> Result<(), CudaError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the library returns constant strings that end in zero, for every number.
        let text = unsafe { constant_text((self.functions.status_text)(code)) };
        Err(failed(call, format!("status {code}"), text))
    }
}

impl Drop for Cudnn {
    fn drop(&mut self) {
        let raw = self.lock().raw();
        if !raw.is_null() && self.context.bind_to_thread().is_ok() {
            // SAFETY: the handle is this library's own; all that uses it holds an `Arc` of `self`.
            unsafe { (self.functions.destroy)(raw) };
        }
    }
}
