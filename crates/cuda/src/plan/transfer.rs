//! Values between host and device: the graph's types on one side, storage types on the other.

use std::borrow::Cow;

use bytemuck::{AnyBitPattern, NoUninit, cast_slice, pod_collect_to_vec, try_cast_slice};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use weft_ir::{DataType, OperatorError, Tensor};

use crate::Storage;
use crate::kernels::stored::stored;

/// A tensor's elements as they lie in device memory.
pub(crate) fn encode(tensor: &Tensor, storage: Storage) -> Result<Cow<'_, [u8]>, OperatorError> {
    Ok(match (storage, tensor.data_type()) {
        (Storage::F32, DataType::F32) => Cow::Borrowed(cast_slice(tensor.elements::<f32>()?)),
        (Storage::F16, DataType::F16) => Cow::Borrowed(cast_slice(tensor.elements::<f16>()?)),
        (Storage::Bf16, DataType::BF16) => Cow::Borrowed(cast_slice(tensor.elements::<bf16>()?)),
        (Storage::F32 | Storage::F16 | Storage::Bf16, _) => {
            Cow::Owned(stored(tensor.to_f32s()?.iter().copied(), storage))
        }
        (Storage::I64, _) => Cow::Borrowed(cast_slice(tensor.elements::<i64>()?)),
        (Storage::I32, _) => Cow::Borrowed(cast_slice(tensor.elements::<i32>()?)),
        (Storage::U8, _) => Cow::Borrowed(tensor.elements::<u8>()?),
        (Storage::I8, _) => Cow::Borrowed(cast_slice(tensor.elements::<i8>()?)),
        (Storage::Bool, _) => Cow::Borrowed(cast_slice(tensor.elements::<bool>()?)),
    })
}

/// The tensor whose elements lie in device memory as `bytes`.
pub(crate) fn decode(
    bytes: &[u8],
    storage: Storage,
    data_type: DataType,
    shape: Vec<usize>,
) -> Result<Tensor, OperatorError> {
    let floats = |elements: Vec<f32>, shape| Tensor::from_f32s(shape, data_type, elements);
    match (storage, data_type) {
        (Storage::F16, DataType::F16) => {
            Tensor::from_vec(shape, pod_collect_to_vec::<u8, f16>(bytes))
        }
        (Storage::Bf16, DataType::BF16) => {
            Tensor::from_vec(shape, pod_collect_to_vec::<u8, bf16>(bytes))
        }
        (Storage::F32, _) => floats(pod_collect_to_vec(bytes), shape),
        (Storage::F16, _) => floats(widened::<f16>(bytes), shape),
        (Storage::Bf16, _) => floats(widened::<bf16>(bytes), shape),
        (Storage::I64, _) => Tensor::from_vec(shape, pod_collect_to_vec::<u8, i64>(bytes)),
        (Storage::I32, _) => Tensor::from_vec(shape, pod_collect_to_vec::<u8, i32>(bytes)),
        (Storage::U8, _) => Tensor::from_vec(shape, bytes.to_vec()),
        (Storage::I8, _) => Tensor::from_vec(shape, pod_collect_to_vec::<u8, i8>(bytes)),
        (Storage::Bool, _) => {
            Tensor::from_vec(shape, bytes.iter().map(|&byte| byte != 0).collect::<Vec<bool>>())
        }
    }
}

/// Halves as floats, many at once where the processor can.
fn widened<T: AnyBitPattern + NoUninit>(bytes: &[u8]) -> Vec<f32>
where
    [T]: HalfFloatSliceExt,
{
    let halves: Cow<'_, [T]> =
        try_cast_slice(bytes).map_or_else(|_| Cow::Owned(pod_collect_to_vec(bytes)), Cow::Borrowed);
    let mut floats = vec![0.0; halves.len()];
    halves.convert_to_f32_slice(&mut floats);
    floats
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;

    fn round_trip(tensor: &Tensor, storage: Storage) -> Tensor {
        let bytes = encode(tensor, storage).unwrap();
        assert_eq!(bytes.len(), tensor.len() * storage.size_bytes());
        decode(&bytes, storage, tensor.data_type(), tensor.shape().to_vec()).unwrap()
    }

    #[test]
    fn values_that_the_storage_holds_come_back_unchanged() {
        // Each is exact in every floating-point storage.
        let floats = vec![0.0f32, -1.5, 0.25, 96.0, f32::INFINITY, -0.0];
        let shape = vec![2, 3];
        let tensors = [
            Tensor::from_f32s(shape.clone(), DataType::F32, floats.clone()).unwrap(),
            Tensor::from_f32s(shape.clone(), DataType::F16, floats.clone()).unwrap(),
            Tensor::from_f32s(shape.clone(), DataType::BF16, floats).unwrap(),
            Tensor::from_vec(shape.clone(), vec![i64::MIN, -1, 0, 1, 1 << 40, i64::MAX]).unwrap(),
            Tensor::from_vec(shape.clone(), vec![i32::MIN, -1, 0, 1, 2, i32::MAX]).unwrap(),
            Tensor::from_vec(shape.clone(), vec![0u8, 1, 2, 127, 128, 255]).unwrap(),
            Tensor::from_vec(shape.clone(), vec![-128i8, -1, 0, 1, 2, 127]).unwrap(),
            Tensor::from_vec(shape, vec![true, false, false, true, true, false]).unwrap(),
        ];
        for tensor in &tensors {
            for precision in Precision::ALL {
                let storage = precision.storage_of(tensor.data_type()).unwrap();
                assert_eq!(&round_trip(tensor, storage), tensor, "{storage:?}");
                let exact = Storage::exact(tensor.data_type()).unwrap();
                assert_eq!(&round_trip(tensor, exact), tensor, "{exact:?}");
            }
        }
    }

    #[test]
    fn narrow_storage_rounds_to_nearest_and_stays_finite() {
        let tensor = Tensor::vector(vec![1.0f32 + 1.0 / 1024.0, 1.0 + 1.0 / 4096.0, 1e6]);
        let halves = round_trip(&tensor, Storage::F16);
        assert_eq!(halves.elements::<f32>().unwrap(), [1.0 + 1.0 / 1024.0, 1.0, f16::MAX.to_f32()]);
    }

    #[test]
    fn a_tensor_of_another_type_is_refused() {
        assert!(encode(&Tensor::scalar(1i32), Storage::I64).is_err());
        assert!(encode(&Tensor::scalar(1i64), Storage::F32).is_err());
        assert!(decode(&[0; 8], Storage::F32, DataType::F32, vec![3]).is_err());
    }
}
