//! A matrix product that cuBLASLt computes: described, with its algorithm chosen.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::cublaslt::sys::{
    cublasComputeType_t as Compute, cublasLtEpilogue_t as Epilogue, cublasLtMatmulAlgo_t,
    cublasLtMatmulDescAttributes_t as DescriptionAttribute, cublasLtMatmulDescOpaque_t,
    cublasLtMatmulHeuristicResult_t, cublasLtMatmulPreferenceAttributes_t as PreferenceAttribute,
    cublasLtMatmulPreferenceOpaque_t, cublasLtMatrixLayoutAttribute_t as LayoutAttribute,
    cublasLtMatrixLayoutOpaque_t, cublasLtReductionScheme_t as Reduction, cudaDataType_t,
};

use super::cublas_lt::CublasLt;
use super::descriptor::Descriptor;
use crate::Storage;
use crate::driver::{CudaError, Stream};
use crate::library_call::{CallActivation, CallOperands, ColumnMatrix, Product, WORKSPACE_BYTES};

type Description = Descriptor<cublasLtMatmulDescOpaque_t>;
type Layout = Descriptor<cublasLtMatrixLayoutOpaque_t>;
type Preference = Descriptor<cublasLtMatmulPreferenceOpaque_t>;

/// The best alignment that cuBLASLt asks for.
const MAX_ALIGNMENT_BYTES: u64 = 256;

/// A product with its operands in their places.
pub(crate) struct BoundProduct {
    // What the library described is dropped before the library.
    description: Description,
    first: Layout,
    second: Layout,
    output: Layout,
    algorithm: cublasLtMatmulAlgo_t,
    has_residual: bool,
    addresses: CallOperands<u64>,
    library: Arc<CublasLt>,
}

impl BoundProduct {
    pub(super) fn new(
        library: Arc<CublasLt>,
        product: &Product,
        addresses: CallOperands<u64>,
    ) -> Result<Self, CudaError> {
        library.context.bind_to_thread()?;
        let storage = product.precision.storage();
        let layout = |matrix: &ColumnMatrix| library.layout(matrix, product.stack, storage);
        let description = library.description(product, addresses.bias)?;
        let first = layout(&product.first)?;
        let second = layout(&product.second)?;
        let output = layout(&product.output)?;
        let preference = library.preference(&addresses)?;
        let algorithm = library.algorithm(
            &description,
            [&first, &second, &output],
            &preference,
            product.rank,
        )?;
        let has_residual = product.has_residual;
        Ok(Self { description, first, second, output, algorithm, has_residual, addresses, library })
    }

    /// Adds it to a stream, whose context is current.
    ///
    /// # Safety
    /// The memory at its addresses lives until it has ended, or as long as the graph where the stream is captured.
    pub(super) unsafe fn add_to(&self, stream: &Stream) -> Result<(), CudaError> {
        let pointer = |address: u64| address as *mut c_void;
        let CallOperands { left, right, residual, output, workspace, .. } = self.addresses;
        let (one, zero) = (1f32, 0f32);
        // What is added lies as the output does; where nothing is, the library does not read it.
        let (beta, added) = if self.has_residual { (&one, residual) } else { (&zero, output) };
        // SAFETY: the handle and the descriptions live; the factors are read before the call returns; the caller
        // vouches for the addresses, whose memory has the sizes of the layouts.
        let code = unsafe {
            (self.library.functions.multiply)(
                self.library.raw,
                self.description.raw(),
                (&raw const one).cast(),
                pointer(right),
                self.first.raw(),
                pointer(left),
                self.second.raw(),
                (beta as *const f32).cast(),
                pointer(added),
                self.output.raw(),
                pointer(output),
                self.output.raw(),
                &self.algorithm,
                pointer(workspace),
                WORKSPACE_BYTES,
                stream.raw().cast(),
            )
        };
        self.library.check("cublasLtMatmul", code)
    }
}

fn data_type(storage: Storage) -> cudaDataType_t {
    match storage {
        Storage::F16 => cudaDataType_t::CUDA_R_16F,
        Storage::Bf16 => cudaDataType_t::CUDA_R_16BF,
        _ => cudaDataType_t::CUDA_R_32F,
    }
}

/// What numbers are multiplied and summed as. One product of tf32 numbers is less than [`crate::Precision::Tf32`]
/// promises, so that it takes what `f32` does.
const COMPUTE: Compute = Compute::CUBLAS_COMPUTE_32F;

/// What follows the sum, which the residual is a part of.
fn epilogue(product: &Product) -> Epilogue {
    match (product.activation, product.has_bias) {
        (CallActivation::None, false) => Epilogue::CUBLASLT_EPILOGUE_DEFAULT,
        (CallActivation::None, true) => Epilogue::CUBLASLT_EPILOGUE_BIAS,
        (CallActivation::Relu, false) => Epilogue::CUBLASLT_EPILOGUE_RELU,
        (CallActivation::Relu, true) => Epilogue::CUBLASLT_EPILOGUE_RELU_BIAS,
        (CallActivation::GeluTanh, false) => Epilogue::CUBLASLT_EPILOGUE_GELU,
        (CallActivation::GeluTanh, true) => Epilogue::CUBLASLT_EPILOGUE_GELU_BIAS,
    }
}

/// The largest power of two that an address is a multiple of, as far as cuBLASLt asks.
fn alignment_bytes(address: u64) -> u32 {
    (MAX_ALIGNMENT_BYTES.min(1 << address.trailing_zeros().min(63))) as u32
}

impl CublasLt {
    fn description(&self, product: &Product, bias: u64) -> Result<Description, CudaError> {
        use DescriptionAttribute as Attribute;
        let functions = &self.functions;
        let create = |raw| {
            // SAFETY: the library writes one handle.
            let code =
                unsafe { (functions.create_description)(raw, COMPUTE, cudaDataType_t::CUDA_R_32F) };
            self.check("cublasLtMatmulDescCreate", code)
        };
        // SAFETY: the two functions belong together.
        let description = unsafe { Description::new(create, functions.destroy_description) }?;
        // The types of the values are those of the library's documentation.
        let transposition = i32::from(product.is_first_transposed);
        self.describe(&description, Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &transposition)?;
        let epilogue = epilogue(product) as u32;
        self.describe(&description, Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
        if product.has_bias {
            // It is of the output's type, unless another is named.
            self.describe(&description, Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias)?;
        }
        let sm_count = product.sm_count as i32;
        self.describe(&description, Attribute::CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &sm_count)?;
        Ok(description)
    }

    fn describe<T>(
        &self,
        description: &Description,
        attribute: DescriptionAttribute,
        value: &T,
    ) -> Result<(), CudaError> {
        let (value, size) = ((value as *const T).cast(), size_of::<T>());
        // SAFETY: the description lives, and the library copies as many bytes as the value has.
        let code =
            unsafe { (self.functions.set_description)(description.raw(), attribute, value, size) };
        self.check("cublasLtMatmulDescSetAttribute", code)
    }

    fn layout(
        &self,
        matrix: &ColumnMatrix,
        stack: usize,
        storage: Storage,
    ) -> Result<Layout, CudaError> {
        let functions = &self.functions;
        let (rows, columns) = (matrix.rows as u64, matrix.columns as u64);
        let (stride, data_type) = (matrix.stride as i64, data_type(storage));
        let create = |raw| {
            // SAFETY: the library writes one handle.
            let code = unsafe { (functions.create_layout)(raw, data_type, rows, columns, stride) };
            self.check("cublasLtMatrixLayoutCreate", code)
        };
        // SAFETY: the two functions belong together.
        let layout = unsafe { Layout::new(create, functions.destroy_layout) }?;
        if stack > 1 {
            let (count, step) = (stack as i32, matrix.step as i64);
            self.lay_out(&layout, LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count)?;
            let attribute = LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET;
            self.lay_out(&layout, attribute, &step)?;
        }
        Ok(layout)
    }

    fn lay_out<T>(
        &self,
        layout: &Layout,
        attribute: LayoutAttribute,
        value: &T,
    ) -> Result<(), CudaError> {
        let (value, size) = ((value as *const T).cast(), size_of::<T>());
        // SAFETY: the layout lives, and the library copies as many bytes as the value has.
        let code = unsafe { (self.functions.set_layout)(layout.raw(), attribute, value, size) };
        self.check("cublasLtMatrixLayoutSetAttribute", code)
    }

    fn preference(&self, addresses: &CallOperands<u64>) -> Result<Preference, CudaError> {
        use PreferenceAttribute as Attribute;
        let functions = &self.functions;
        let create = |raw| {
            // SAFETY: the library writes one handle.
            let code = unsafe { (functions.create_preference)(raw) };
            self.check("cublasLtMatmulPreferenceCreate", code)
        };
        // SAFETY: the two functions belong together.
        let preference = unsafe { Preference::new(create, functions.destroy_preference) }?;
        let workspace = WORKSPACE_BYTES as u64;
        self.prefer(&preference, Attribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace)?;
        // Parts of a sum are added as `f32`, not as what the output is stored in.
        let reduction = Reduction::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE as u32;
        self.prefer(
            &preference,
            Attribute::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
            &reduction,
        )?;
        let added = if addresses.residual == 0 { addresses.output } else { addresses.residual };
        for (attribute, address) in [
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, addresses.right),
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, addresses.left),
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, added),
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, addresses.output),
        ] {
            self.prefer(&preference, attribute, &alignment_bytes(address))?;
        }
        Ok(preference)
    }

    fn prefer<T>(
        &self,
        preference: &Preference,
        attribute: PreferenceAttribute,
        value: &T,
    ) -> Result<(), CudaError> {
        let (value, size) = ((value as *const T).cast(), size_of::<T>());
        // SAFETY: the preference lives, and the library copies as many bytes as the value has.
        let code =
            unsafe { (self.functions.set_preference)(preference.raw(), attribute, value, size) };
        self.check("cublasLtMatmulPreferenceSetAttribute", code)
    }

    /// The algorithm that the library expects to be fastest after so many others.
    fn algorithm(
        &self,
        description: &Description,
        [first, second, output]: [&Layout; 3],
        preference: &Preference,
        rank: usize,
    ) -> Result<cublasLtMatmulAlgo_t, CudaError> {
        // SAFETY: all fields are numbers, or an enumeration in which zero is a value.
        let none: cublasLtMatmulHeuristicResult_t = unsafe { std::mem::zeroed() };
        let mut found = vec![none; rank + 1];
        let mut count = 0;
        // SAFETY: the handle and the descriptions live, and there is place for the results that are asked for.
        let code = unsafe {
            (self.functions.suggest)(
                self.raw,
                description.raw(),
                first.raw(),
                second.raw(),
                output.raw(),
                output.raw(),
                preference.raw(),
                found.len() as i32,
                found.as_mut_ptr(),
                &mut count,
            )
        };
        self.check("cublasLtMatmulAlgoGetHeuristic", code)?;
        let found = &found[..found.len().min(usize::try_from(count).unwrap_or(0))];
        match found.get(rank) {
            Some(found) if found.workspaceSize <= WORKSPACE_BYTES => Ok(found.algo),
            _ => {
                let problem = format!("cuBLASLt has no {} algorithms for the product", rank + 1);
                Err(CudaError::Refused(problem))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignments_are_those_of_the_addresses() {
        for (address, expected) in [(0x1000, 256), (0x1040, 64), (0x1002, 2), (0, 256)] {
            assert_eq!(alignment_bytes(address), expected, "{address:#x}");
        }
    }
}
