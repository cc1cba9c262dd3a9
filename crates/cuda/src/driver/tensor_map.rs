//! Descriptions of tensors for the bulk copy engine.

use cudarc::driver::sys::{
    self, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};

use super::error::{CudaError, checked};
use crate::launch::{Copied, CopiedWindows, TensorMap};
use crate::precision::Storage;

/// The size of a description, as a kernel takes it.
const SIZE_BYTES: usize = 128;

/// The description of a tensor that starts at `base`, as the bytes of a kernel's parameter. What lies outside the
/// tensor is read as zero. A context of the GPU must be current.
pub fn encode_tensor_map(map: &TensorMap, base: u64) -> Result<[u8; SIZE_BYTES], CudaError> {
    let rank = map.sizes.len();
    let axes = match &map.copied {
        Copied::Box(sizes) => sizes.len(),
        Copied::Windows(_) => IMAGE_AXES,
    };
    if rank == 0 || map.strides_bytes.len() + 1 != rank || axes != rank {
        return Err(CudaError::Refused(format!(
            "a tensor map of {rank} axes needs as many of what it copies and one stride less: {map:?}"
        )));
    }
    match &map.copied {
        Copied::Box(sizes) => encode_boxes(map, base, sizes),
        Copied::Windows(windows) => encode_windows(map, base, windows),
    }
}

/// Channels, columns, rows and images.
const IMAGE_AXES: usize = 4;

fn encode_boxes(map: &TensorMap, base: u64, sizes: &[u32]) -> Result<[u8; SIZE_BYTES], CudaError> {
    let steps = vec![1u32; sizes.len()];
    let mut encoded = sys::CUtensorMap { opaque: [0; 16] };
    // SAFETY: the driver reads as many elements of each list as there are axes, one less of the strides, and writes the
    // description; the base is an address of the GPU that it stores and does not follow.
    unsafe {
        checked!(cuTensorMapEncodeTiled(
            &mut encoded,
            data_type(map.storage),
            sizes.len() as u32,
            base as *mut std::ffi::c_void,
            map.sizes.as_ptr(),
            map.strides_bytes.as_ptr(),
            sizes.as_ptr(),
            steps.as_ptr(),
            CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle(map.swizzle_bytes)?,
            CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        ))
    }?;
    Ok(bytemuck::cast(encoded.opaque))
}

fn encode_windows(
    map: &TensorMap,
    base: u64,
    windows: &CopiedWindows,
) -> Result<[u8; SIZE_BYTES], CudaError> {
    let [columns, rows] = windows.strides;
    let steps: [u32; IMAGE_AXES] = [1, columns, rows, 1];
    let mut encoded = sys::CUtensorMap { opaque: [0; 16] };
    // SAFETY: the driver reads four elements of sizes and steps, three of the strides and two of each corner, and writes
    // the description; the base is an address of the GPU that it stores and does not follow.
    unsafe {
        checked!(cuTensorMapEncodeIm2col(
            &mut encoded,
            data_type(map.storage),
            IMAGE_AXES as u32,
            base as *mut std::ffi::c_void,
            map.sizes.as_ptr(),
            map.strides_bytes.as_ptr(),
            windows.first.as_ptr(),
            windows.last.as_ptr(),
            windows.channels,
            windows.count,
            steps.as_ptr(),
            CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle(map.swizzle_bytes)?,
            CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        ))
    }?;
    Ok(bytemuck::cast(encoded.opaque))
}

fn data_type(storage: Storage) -> CUtensorMapDataType {
    match storage {
        Storage::F16 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        Storage::Bf16 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        Storage::F32 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        Storage::I64 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_INT64,
        Storage::I32 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_INT32,
        Storage::U8 | Storage::I8 | Storage::Bool => {
            CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT8
        }
    }
}

fn swizzle(bytes: u32) -> Result<CUtensorMapSwizzle, CudaError> {
    Ok(match bytes {
        0 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
        32 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        64 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        128 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
        _ => return Err(CudaError::Refused(format!("there is no swizzle of {bytes} bytes"))),
    })
}
