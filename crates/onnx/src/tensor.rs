//! Tensors in a file: every way the standard has to write their elements.

use std::path::Path;

use bytes::Bytes;
use half::{bf16, f16};
use weft_ir::{
    Array, DataType, Element, Tensor, TensorData, checked_count, element_count, strides,
};

use crate::error::LoadError;
use crate::external::ExternalFiles;
use crate::limits::{MAX_DENSIFIED_ELEMENTS, MAX_RANK};
use crate::proto::{SparseTensorProto, TensorProto};

/// The value of `data_location` that says that the elements lie in another file.
pub(crate) const EXTERNAL: i32 = 1;

/// Reads the tensors of one model, and counts what they take beyond the model's own bytes.
#[derive(Debug, Default)]
pub(crate) struct TensorReader {
    files: ExternalFiles,
    /// Elements of sparse tensors made dense so far.
    densified: usize,
}

impl TensorReader {
    /// A reader that looks for elements in other files in `folder`, and refuses such tensors where there is none.
    pub(crate) fn new(folder: Option<&Path>) -> Self {
        Self { files: ExternalFiles::new(folder), densified: 0 }
    }

    /// A tensor as its message gives it.
    pub(crate) fn read(&mut self, proto: &TensorProto) -> Result<Tensor, LoadError> {
        let fail = |problem: String| LoadError::Tensor { name: proto.name.clone(), problem };
        let data_type = data_type(proto.data_type).map_err(fail)?;
        let shape = shape(&proto.dims).map_err(fail)?;
        let count = element_count(&shape).ok_or_else(|| {
            fail(format!("shape {shape:?} has more elements than can be counted"))
        })?;
        let raw = if proto.data_location == Some(EXTERNAL) {
            Some(self.files.find(&proto.external_data).map_err(fail)?)
        } else {
            // An empty field beside filled typed ones is how some writers leave it unset.
            proto.raw_data.clone().filter(|raw| !raw.is_empty())
        };
        match raw {
            Some(raw) => from_raw(shape, count, data_type, raw),
            None => from_fields(shape, data_type, count, proto),
        }
        .map_err(fail)
    }

    /// A sparse tensor, made dense.
    pub(crate) fn read_sparse(&mut self, proto: &SparseTensorProto) -> Result<Tensor, LoadError> {
        let name = proto.values.as_ref().map_or("", |values| &values.name).to_string();
        let fail = |problem: String| LoadError::Tensor { name: name.clone(), problem };
        let (Some(values), Some(indices)) = (&proto.values, &proto.indices) else {
            return Err(fail("a sparse tensor needs values and indices".into()));
        };
        let (values, indices) = (self.read(values)?, self.read(indices)?);
        let shape = shape(&proto.dims).map_err(fail)?;
        // The elements that are not listed take no bytes in the file, so nothing else bounds them.
        self.densified = element_count(&shape)
            .and_then(|count| count.checked_add(self.densified))
            .filter(|&total| total <= MAX_DENSIFIED_ELEMENTS)
            .ok_or_else(|| {
                fail(format!(
                    "the model's sparse tensors have more than {MAX_DENSIFIED_ELEMENTS} elements"
                ))
            })?;
        dense(shape, &values, &indices).map_err(fail)
    }
}

fn dense(shape: Vec<usize>, values: &Tensor, indices: &Tensor) -> Result<Tensor, String> {
    let describe = |error: weft_ir::OperatorError| error.to_string();
    let count = checked_count(&shape, values.data_type()).map_err(describe)?;
    let positions = positions(&shape, values.len(), indices)?;
    // Element 0 of the chained tensor is the zero, the others are the listed values.
    let zero = zero(values.data_type());
    let pool = Tensor::chained(&[&zero, values]).map_err(describe)?;
    let mut picks = vec![0usize; count];
    for (entry, position) in positions.into_iter().enumerate() {
        let slot = picks
            .get_mut(position)
            .ok_or_else(|| format!("sparse index {position} is outside shape {shape:?}"))?;
        *slot = entry + 1;
    }
    pool.gathered(shape, &picks).map_err(describe)
}

/// Where each listed value of a sparse tensor goes in the flat dense one.
fn positions(shape: &[usize], entries: usize, indices: &Tensor) -> Result<Vec<usize>, String> {
    let given = indices.elements::<i64>().map_err(|error| error.to_string())?;
    let outside = |index: i64| format!("sparse index {index} is outside shape {shape:?}");
    match indices.shape() {
        [count] if *count == entries => {
            given.iter().map(|&index| usize::try_from(index).map_err(|_| outside(index))).collect()
        }
        [count, rank] if *count == entries && *rank == shape.len() && *rank > 0 => {
            let strides = strides(shape);
            let flatten = |row: &[i64]| {
                let mut position = 0usize;
                for ((&index, &size), &stride) in row.iter().zip(shape).zip(&strides) {
                    let inside = usize::try_from(index).ok().filter(|&index| index < size);
                    position += inside.ok_or_else(|| outside(index))? * stride;
                }
                Ok(position)
            };
            given.chunks_exact(*rank).map(flatten).collect()
        }
        other => Err(format!("sparse indices of shape {other:?} do not fit {entries} values")),
    }
}

fn zero(data_type: DataType) -> Tensor {
    match data_type {
        DataType::F32 => Tensor::vector(vec![0f32]),
        DataType::F64 => Tensor::vector(vec![0f64]),
        DataType::F16 => Tensor::vector(vec![f16::ZERO]),
        DataType::BF16 => Tensor::vector(vec![bf16::ZERO]),
        DataType::I8 => Tensor::vector(vec![0i8]),
        DataType::I16 => Tensor::vector(vec![0i16]),
        DataType::I32 => Tensor::vector(vec![0i32]),
        DataType::I64 => Tensor::vector(vec![0i64]),
        DataType::U8 => Tensor::vector(vec![0u8]),
        DataType::U16 => Tensor::vector(vec![0u16]),
        DataType::U32 => Tensor::vector(vec![0u32]),
        DataType::U64 => Tensor::vector(vec![0u64]),
        DataType::Bool => Tensor::vector(vec![false]),
        DataType::String => Tensor::vector(vec![String::new()]),
        DataType::Complex64 => Tensor::vector(vec![[0f32; 2]]),
        DataType::Complex128 => Tensor::vector(vec![[0f64; 2]]),
        narrow => Tensor::new(vec![1], TensorData::Narrow(narrow, vec![0u8].into()))
            .expect("one element fits shape [1]"),
    }
}

pub(crate) fn data_type(code: Option<i32>) -> Result<DataType, String> {
    let code = code.unwrap_or(0);
    DataType::from_onnx(code.into()).ok_or_else(|| format!("{code} is not an element type"))
}

fn shape(dims: &[i64]) -> Result<Vec<usize>, String> {
    if dims.len() > MAX_RANK {
        return Err(format!("has {} dimensions, more than the limit of {MAX_RANK}", dims.len()));
    }
    dims.iter()
        .map(|&dim| usize::try_from(dim).map_err(|_| format!("dimension {dim} is negative")))
        .collect()
}

fn from_raw(
    shape: Vec<usize>,
    count: usize,
    data_type: DataType,
    raw: Bytes,
) -> Result<Tensor, String> {
    let expected = count.checked_mul(data_type.bits()).map(|bits| bits.div_ceil(8));
    if data_type == DataType::String {
        return Err("strings cannot be given as raw data".into());
    }
    if expected != Some(raw.len()) {
        return Err(format!(
            "{data_type} of shape {shape:?} does not take {} bytes of raw data",
            raw.len()
        ));
    }
    match data_type {
        DataType::F32 => Tensor::from_bytes::<f32>(shape, raw),
        DataType::F64 => Tensor::from_bytes::<f64>(shape, raw),
        DataType::F16 => Tensor::from_bytes::<f16>(shape, raw),
        DataType::BF16 => Tensor::from_bytes::<bf16>(shape, raw),
        DataType::I8 => Tensor::from_bytes::<i8>(shape, raw),
        DataType::I16 => Tensor::from_bytes::<i16>(shape, raw),
        DataType::I32 => Tensor::from_bytes::<i32>(shape, raw),
        DataType::I64 => Tensor::from_bytes::<i64>(shape, raw),
        DataType::U8 => Tensor::from_bytes::<u8>(shape, raw),
        DataType::U16 => Tensor::from_bytes::<u16>(shape, raw),
        DataType::U32 => Tensor::from_bytes::<u32>(shape, raw),
        DataType::U64 => Tensor::from_bytes::<u64>(shape, raw),
        DataType::Complex64 => Tensor::from_bytes::<[f32; 2]>(shape, raw),
        DataType::Complex128 => Tensor::from_bytes::<[f64; 2]>(shape, raw),
        DataType::Bool => Tensor::from_vec(shape, raw.iter().map(|&byte| byte != 0).collect()),
        narrow => {
            let codes = match narrow.bits() {
                8 => Array::from_bytes(raw).ok_or("bytes are always aligned")?,
                _ => unpack(&raw, count, narrow).into(),
            };
            Tensor::new(shape, TensorData::Narrow(narrow, codes))
        }
    }
    .map_err(|error| error.to_string())
}

/// One code per byte from several codes per byte, the first in the lowest bits.
fn unpack(packed: &[u8], count: usize, data_type: DataType) -> Vec<u8> {
    let bits = data_type.bits();
    let per_byte = 8 / bits;
    let signed = matches!(data_type, DataType::I4 | DataType::I2);
    let code = |index: usize| {
        // Shifting the code to the top and back leaves either zeros or copies of its sign above it.
        let top = packed[index / per_byte] << (8 - bits * (index % per_byte + 1));
        if signed { (top as i8 >> (8 - bits)) as u8 } else { top >> (8 - bits) }
    };
    (0..count).map(code).collect()
}

fn from_fields(
    shape: Vec<usize>,
    data_type: DataType,
    count: usize,
    proto: &TensorProto,
) -> Result<Tensor, String> {
    let integers = &proto.int32_data;
    match data_type {
        DataType::F32 => typed(shape, proto.float_data.clone()),
        DataType::F64 => typed(shape, proto.double_data.clone()),
        DataType::I64 => typed(shape, proto.int64_data.clone()),
        DataType::U64 => typed(shape, proto.uint64_data.clone()),
        DataType::U32 => typed(shape, cast(&proto.uint64_data, |&wide| wide as u32)),
        DataType::I32 => typed(shape, integers.clone()),
        DataType::I16 => typed(shape, cast(integers, |&wide| wide as i16)),
        DataType::U16 => typed(shape, cast(integers, |&wide| wide as u16)),
        DataType::I8 => typed(shape, cast(integers, |&wide| wide as i8)),
        DataType::U8 => typed(shape, cast(integers, |&wide| wide as u8)),
        DataType::Bool => typed(shape, cast(integers, |&wide| wide != 0)),
        DataType::F16 => typed(shape, cast(integers, |&wide| f16::from_bits(wide as u16))),
        DataType::BF16 => typed(shape, cast(integers, |&wide| bf16::from_bits(wide as u16))),
        DataType::Complex64 => typed(shape, pairs(&proto.float_data)?),
        DataType::Complex128 => typed(shape, pairs(&proto.double_data)?),
        DataType::String => {
            let text = |bytes: &Bytes| {
                String::from_utf8(bytes.to_vec()).map_err(|_| "a string is not UTF-8".to_string())
            };
            typed(shape, proto.string_data.iter().map(text).collect::<Result<_, _>>()?)
        }
        narrow => from_raw(shape, count, narrow, cast(integers, |&wide| wide as u8).into()),
    }
}

fn cast<Wide, Narrow>(elements: &[Wide], cast: impl Fn(&Wide) -> Narrow) -> Vec<Narrow> {
    elements.iter().map(cast).collect()
}

fn pairs<T: Copy>(elements: &[T]) -> Result<Vec<[T; 2]>, String> {
    let (pairs, rest) = elements.as_chunks::<2>();
    if rest.is_empty() { Ok(pairs.to_vec()) } else { Err("a complex number lacks a part".into()) }
}

fn typed<T: Element>(shape: Vec<usize>, elements: Vec<T>) -> Result<Tensor, String> {
    Tensor::from_vec(shape, elements).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_alone(proto: &TensorProto) -> Result<Tensor, LoadError> {
        TensorReader::default().read(proto)
    }

    fn proto(data_type: DataType, dims: &[i64]) -> TensorProto {
        TensorProto {
            name: "t".into(),
            dims: dims.to_vec(),
            data_type: Some(data_type.onnx_code()),
            ..TensorProto::default()
        }
    }

    #[test]
    fn packed_codes_are_unpacked_low_bits_first() {
        let cases: &[(DataType, &[u8], &[u8])] = &[
            (DataType::U4, &[0xa3, 0x0f], &[0x3, 0xa, 0xf]),
            (DataType::I4, &[0xa3, 0x0f], &[0x3, 0xfa, 0xff]),
            (DataType::U2, &[0b11_10_01_00], &[0, 1, 2]),
            (DataType::I2, &[0b11_10_01_00, 0b01], &[0, 1, 0xfe, 0xff, 1]),
        ];
        for &(data_type, packed, codes) in cases {
            let expected = TensorData::Narrow(data_type, codes.to_vec().into());
            let raw = TensorProto {
                raw_data: Some(Bytes::copy_from_slice(packed)),
                ..proto(data_type, &[codes.len() as i64])
            };
            assert_eq!(read_alone(&raw).unwrap().data(), &expected);
            let fields = TensorProto {
                int32_data: packed.iter().map(|&byte| byte.into()).collect(),
                ..proto(data_type, &[codes.len() as i64])
            };
            assert_eq!(read_alone(&fields).unwrap().data(), &expected);
        }
    }

    #[test]
    fn sixteen_bit_floats_are_given_by_their_bits() {
        let fields = TensorProto { int32_data: vec![0x3c00], ..proto(DataType::F16, &[]) };
        assert_eq!(read_alone(&fields).unwrap().elements::<f16>().unwrap(), &[f16::ONE]);
        let fields = TensorProto { int32_data: vec![0x3f80], ..proto(DataType::BF16, &[]) };
        assert_eq!(read_alone(&fields).unwrap().elements::<bf16>().unwrap(), &[bf16::ONE]);
    }

    #[test]
    fn hostile_tensors_are_refused() {
        let raw = Some(Bytes::from_static(&[0; 8]));
        let cases = [
            proto(DataType::F32, &[-1]),
            proto(DataType::F32, &[1 << 40]),
            proto(DataType::F32, &[i64::MAX, i64::MAX]),
            proto(DataType::F32, &[0; MAX_RANK + 1]),
            TensorProto { raw_data: raw.clone(), ..proto(DataType::F32, &[3]) },
            TensorProto { raw_data: raw.clone(), ..proto(DataType::U4, &[14]) },
            TensorProto { raw_data: raw.clone(), ..proto(DataType::U4, &[i64::MAX]) },
            TensorProto { raw_data: raw, ..proto(DataType::String, &[1]) },
            TensorProto { float_data: vec![0.0], ..proto(DataType::Complex64, &[1]) },
            TensorProto { data_type: Some(99), ..TensorProto::default() },
            TensorProto { data_type: None, ..TensorProto::default() },
        ];
        for case in cases {
            assert!(matches!(read_alone(&case), Err(LoadError::Tensor { .. })), "{case:?}");
        }
    }

    #[test]
    fn sparse_tensors_become_dense() {
        let values = TensorProto { float_data: vec![5.0, 6.0], ..proto(DataType::F32, &[2]) };
        let flat = TensorProto { int64_data: vec![1, 5], ..proto(DataType::I64, &[2]) };
        let pairs = TensorProto { int64_data: vec![0, 1, 1, 2], ..proto(DataType::I64, &[2, 2]) };
        for indices in [flat, pairs] {
            let sparse = SparseTensorProto {
                values: Some(values.clone()),
                indices: Some(indices),
                dims: vec![2, 3],
            };
            let tensor = TensorReader::default().read_sparse(&sparse).unwrap();
            assert_eq!(tensor.shape(), &[2, 3]);
            assert_eq!(tensor.elements::<f32>().unwrap(), &[0.0, 5.0, 0.0, 0.0, 0.0, 6.0]);
        }
        let outside = SparseTensorProto {
            values: Some(values),
            indices: Some(TensorProto { int64_data: vec![1, 6], ..proto(DataType::I64, &[2]) }),
            dims: vec![2, 3],
        };
        assert!(TensorReader::default().read_sparse(&outside).is_err());
    }
}
