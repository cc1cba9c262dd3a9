//! A convolution that cuDNN computes: described, with its scratch memory checked.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use cudarc::cudnn::sys::{
    cudnnActivationMode_t as ActivationMode, cudnnActivationStruct,
    cudnnConvolutionFwdAlgo_t as ForwardAlgorithm, cudnnConvolutionMode_t as Mode,
    cudnnConvolutionStruct, cudnnDataType_t as DataType, cudnnFilterStruct,
    cudnnMathType_t as MathType, cudnnNanPropagation_t as NanPropagation, cudnnTensorFormat_t,
    cudnnTensorStruct,
};

use super::cudnn::Cudnn;
use super::descriptor::Descriptor;
use crate::driver::{CudaError, Stream};
use crate::library_call::{Algorithm, CallOperands, Convolution, WORKSPACE_BYTES};
use crate::{Precision, Storage};

type TensorDescription = Descriptor<cudnnTensorStruct>;
type FilterDescription = Descriptor<cudnnFilterStruct>;
type WindowDescription = Descriptor<cudnnConvolutionStruct>;
type ActivationDescription = Descriptor<cudnnActivationStruct>;

/// Pixels lie one after the other, each with all its channels; taps of filters do too.
const CHANNELS_LAST: cudnnTensorFormat_t = cudnnTensorFormat_t::CUDNN_TENSOR_NHWC;

/// A convolution with its operands in their places.
pub(crate) struct BoundConvolution {
    // What the library described is dropped before the library.
    images: TensorDescription,
    filters: FilterDescription,
    windows: WindowDescription,
    bias: TensorDescription,
    activation: ActivationDescription,
    output: TensorDescription,
    algorithm: ForwardAlgorithm,
    has_residual: bool,
    addresses: CallOperands<u64>,
    library: Arc<Cudnn>,
}

impl BoundConvolution {
    pub(super) fn new(
        library: Arc<Cudnn>,
        convolution: &Convolution,
        addresses: CallOperands<u64>,
    ) -> Result<Self, CudaError> {
        library.context.bind_to_thread()?;
        let Convolution { images, image, filters, .. } = *convolution;
        let data_type = data_type(convolution.precision.storage());
        let [height, width] = image.size;
        let [rows, columns] = image.output;
        let bound = Self {
            images: library.tensor(data_type, [images, image.channels, height, width])?,
            filters: library.filters(data_type, convolution)?,
            windows: library.windows(convolution)?,
            bias: library.tensor(data_type, [1, filters, 1, 1])?,
            activation: library.activation(convolution.is_relu)?,
            output: library.tensor(data_type, [images, filters, rows, columns])?,
            algorithm: algorithm(convolution.algorithm),
            has_residual: convolution.has_residual,
            addresses,
            library,
        };
        bound.check_workspace()?;
        Ok(bound)
    }

    fn check_workspace(&self) -> Result<(), CudaError> {
        let mut size_bytes = 0;
        let handle = self.library.lock();
        // SAFETY: the handle and the descriptions live, and the library writes one number.
        let code = unsafe {
            (self.library.functions.workspace_size)(
                handle.raw(),
                self.images.raw(),
                self.filters.raw(),
                self.windows.raw(),
                self.output.raw(),
                self.algorithm,
                &mut size_bytes,
            )
        };
        self.library.check("cudnnGetConvolutionForwardWorkspaceSize", code)?;
        if size_bytes > WORKSPACE_BYTES {
            let problem = format!("cuDNN asks for {size_bytes} bytes of scratch memory");
            return Err(CudaError::Refused(problem));
        }
        Ok(())
    }

    /// Adds it to a stream, whose context is current.
    ///
    /// # Safety
    /// The memory at its addresses lives until it has ended, or as long as the graph where the stream is captured.
    pub(super) unsafe fn add_to(&self, stream: &Stream) -> Result<(), CudaError> {
        let pointer = |address: u64| address as *mut c_void;
        let CallOperands { left, right, bias, residual, output, workspace } = self.addresses;
        let (one, zero) = (1f32, 0f32);
        // What is added lies as the output does; where nothing is, the library does not read it.
        let (factor, added) = if self.has_residual { (&one, residual) } else { (&zero, output) };
        let handle = self.library.lock_in(stream)?;
        // SAFETY: the handle and the descriptions live; the factors are read before the call returns; the caller
        // vouches for the addresses, whose memory has the sizes of the descriptions.
        let code = unsafe {
            (self.library.functions.convolve)(
                handle.raw(),
                (&raw const one).cast(),
                self.images.raw(),
                pointer(left),
                self.filters.raw(),
                pointer(right),
                self.windows.raw(),
                self.algorithm,
                pointer(workspace),
                WORKSPACE_BYTES,
                (factor as *const f32).cast(),
                self.output.raw(),
                pointer(added),
                self.bias.raw(),
                pointer(bias),
                self.activation.raw(),
                self.output.raw(),
                pointer(output),
            )
        };
        self.library.check("cudnnConvolutionBiasActivationForward", code)
    }
}

fn data_type(storage: Storage) -> DataType {
    match storage {
        Storage::F16 => DataType::CUDNN_DATA_HALF,
        Storage::Bf16 => DataType::CUDNN_DATA_BFLOAT16,
        _ => DataType::CUDNN_DATA_FLOAT,
    }
}

fn math_type(precision: Precision) -> MathType {
    match precision {
        Precision::F16 | Precision::Bf16 => MathType::CUDNN_TENSOR_OP_MATH,
        // One product of tf32 numbers is less than the precision of that name promises.
        Precision::Tf32 | Precision::F32 => MathType::CUDNN_FMA_MATH,
    }
}

fn algorithm(algorithm: Algorithm) -> ForwardAlgorithm {
    use ForwardAlgorithm as Forward;
    match algorithm {
        Algorithm::ImplicitGemm => Forward::CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
        Algorithm::ImplicitPrecomputedGemm => {
            Forward::CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM
        }
    }
}

/// A size as cuDNN counts; those of a [`Convolution`] are within its range.
fn size(size: usize) -> c_int {
    c_int::try_from(size).expect("sizes were checked")
}

impl Cudnn {
    /// Images, however many, with their channels, rows and columns.
    fn tensor(
        &self,
        data_type: DataType,
        sizes: [usize; 4],
    ) -> Result<TensorDescription, CudaError> {
        let functions = &self.functions;
        let create = |raw| {
            // SAFETY: the library writes one handle.
            let code = unsafe { (functions.create_tensor)(raw) };
            self.check("cudnnCreateTensorDescriptor", code)
        };
        // SAFETY: the two functions belong together.
        let tensor = unsafe { TensorDescription::new(create, functions.destroy_tensor) }?;
        let [n, c, h, w] = sizes.map(size);
        // SAFETY: the description lives.
        let code =
            unsafe { (functions.set_tensor)(tensor.raw(), CHANNELS_LAST, data_type, n, c, h, w) };
        self.check("cudnnSetTensor4dDescriptor", code)?;
        Ok(tensor)
    }

    fn filters(
        &self,
        data_type: DataType,
        convolution: &Convolution,
    ) -> Result<FilterDescription, CudaError> {
        let functions = &self.functions;
        let create = |raw| {
            // SAFETY: the library writes one handle.
            let code = unsafe { (functions.create_filter)(raw) };
            self.check("cudnnCreateFilterDescriptor", code)
        };
        // SAFETY: the two functions belong together.
        let filters = unsafe { FilterDescription::new(create, functions.destroy_filter) }?;
        let [h, w] = convolution.image.kernel.map(size);
        let (k, c) = (size(convolution.filters), size(convolution.image.channels));
        // SAFETY: the description lives.
        let code =
            unsafe { (functions.set_filter)(filters.raw(), data_type, CHANNELS_LAST, k, c, h, w) };
        self.check("cudnnSetFilter4dDescriptor", code)?;
        Ok(filters)
    }

    fn windows(&self, convolution: &Convolution) -> Result<WindowDescription, CudaError> {
        let functions = &self.functions;
        let create = |raw| {
            // SAFETY: the library writes one handle.
            let code = unsafe { (functions.create_convolution)(raw) };
            self.check("cudnnCreateConvolutionDescriptor", code)
        };
        // SAFETY: the two functions belong together.
        let windows = unsafe { WindowDescription::new(create, functions.destroy_convolution) }?;
        let image = &convolution.image;
        let [pad_y, pad_x] = image.pads_begin.map(size);
        let [stride_y, stride_x] = image.strides.map(size);
        let [dilation_y, dilation_x] = image.dilations.map(size);
        // SAFETY: the description lives.
        let code = unsafe {
            (functions.set_convolution)(
                windows.raw(),
                pad_y,
                pad_x,
                stride_y,
                stride_x,
                dilation_y,
                dilation_x,
                Mode::CUDNN_CROSS_CORRELATION,
                DataType::CUDNN_DATA_FLOAT,
            )
        };
        self.check("cudnnSetConvolution2dDescriptor", code)?;
        // SAFETY: the description lives.
        let code = unsafe { (functions.set_math)(windows.raw(), math_type(convolution.precision)) };
        self.check("cudnnSetConvolutionMathType", code)?;
        Ok(windows)
    }

    fn activation(&self, is_relu: bool) -> Result<ActivationDescription, CudaError> {
        let functions = &self.functions;
        let create = |raw| {
            // SAFETY: the library writes one handle.
            let code = unsafe { (functions.create_activation)(raw) };
            self.check("cudnnCreateActivationDescriptor", code)
        };
        // SAFETY: the two functions belong together.
        let activation =
            unsafe { ActivationDescription::new(create, functions.destroy_activation) }?;
        let mode = match is_relu {
            true => ActivationMode::CUDNN_ACTIVATION_RELU,
            false => ActivationMode::CUDNN_ACTIVATION_IDENTITY,
        };
        let not_a_number = NanPropagation::CUDNN_NOT_PROPAGATE_NAN;
        // SAFETY: the description lives.
        let code = unsafe { (functions.set_activation)(activation.raw(), mode, not_a_number, 0.0) };
        self.check("cudnnSetActivationDescriptor", code)?;
        Ok(activation)
    }
}
