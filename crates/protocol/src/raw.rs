//! Tensors as bytes: elements one after the other, little-endian; a text follows its length as four bytes.

use bytes::{BufMut, Bytes};
use weft_ir::{DataType, Tensor, TensorData};

use crate::data_types::wire_name;
use crate::shape;

/// Bytes of the length that stands before a text.
const LENGTH_BYTES: usize = 4;

/// The tensor whose elements are `bytes`. They are not copied where their alignment allows, apart from texts and truth
/// values. The error says what is wrong with them.
pub fn tensor_from_raw(
    data_type: DataType,
    shape: Vec<usize>,
    bytes: Bytes,
) -> Result<Tensor, String> {
    let count = shape::count(&shape, data_type)?;
    if data_type == DataType::String {
        let texts = texts_from_raw(&bytes, count)?;
        return Tensor::from_vec(shape, texts).map_err(|error| error.to_string());
    }
    if bytes.len() != count * data_type.size_bytes() {
        return Err(format!(
            "{} bytes do not make {count} elements of {data_type}, which take {}",
            bytes.len(),
            count * data_type.size_bytes()
        ));
    }
    match data_type {
        DataType::F32 => Tensor::from_bytes::<f32>(shape, bytes),
        DataType::F64 => Tensor::from_bytes::<f64>(shape, bytes),
        DataType::F16 => Tensor::from_bytes::<half::f16>(shape, bytes),
        DataType::BF16 => Tensor::from_bytes::<half::bf16>(shape, bytes),
        DataType::I8 => Tensor::from_bytes::<i8>(shape, bytes),
        DataType::I16 => Tensor::from_bytes::<i16>(shape, bytes),
        DataType::I32 => Tensor::from_bytes::<i32>(shape, bytes),
        DataType::I64 => Tensor::from_bytes::<i64>(shape, bytes),
        DataType::U8 => Tensor::from_bytes::<u8>(shape, bytes),
        DataType::U16 => Tensor::from_bytes::<u16>(shape, bytes),
        DataType::U32 => Tensor::from_bytes::<u32>(shape, bytes),
        DataType::U64 => Tensor::from_bytes::<u64>(shape, bytes),
        DataType::Bool => {
            Tensor::from_vec(shape, bytes.iter().map(|&byte| byte != 0).collect::<Vec<bool>>())
        }
        other => return Err(format!("type {other} has no form in messages")),
    }
    .map_err(|error| error.to_string())
}

fn texts_from_raw(mut bytes: &[u8], count: usize) -> Result<Vec<String>, String> {
    // Each text takes at least its length, so a shape that promises too much is refused before anything is reserved.
    if bytes.len() / LENGTH_BYTES < count {
        return Err(format!("{} bytes do not hold {count} texts", bytes.len()));
    }
    let mut texts = Vec::with_capacity(count);
    for index in 0..count {
        let past_end = || format!("element {index} is cut short");
        let (length, rest) = bytes.split_first_chunk().ok_or_else(past_end)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (text, rest) = rest.split_at_checked(length).ok_or_else(past_end)?;
        let text = str::from_utf8(text).map_err(|_| format!("element {index} is not UTF-8"))?;
        texts.push(text.to_owned());
        bytes = rest;
    }
    if !bytes.is_empty() {
        return Err(format!("{} bytes follow its {count} texts", bytes.len()));
    }
    Ok(texts)
}

/// How many bytes [`raw_bytes`] gives.
pub fn raw_size_bytes(tensor: &Tensor) -> usize {
    match tensor.data() {
        TensorData::String(texts) => texts.iter().map(|text| LENGTH_BYTES + text.len()).sum(),
        _ => tensor.size_bytes(),
    }
}

/// The elements of a tensor as bytes, shared with the tensor where it was itself read from bytes.
pub fn raw_bytes(tensor: &Tensor) -> Result<Bytes, String> {
    if let Some(shared) = source_bytes(tensor) {
        return Ok(shared);
    }
    let mut bytes = Vec::with_capacity(raw_size_bytes(tensor));
    append_raw(tensor, &mut bytes)?;
    Ok(bytes.into())
}

/// Appends the elements of a tensor as bytes.
pub(crate) fn append_raw(tensor: &Tensor, bytes: &mut Vec<u8>) -> Result<(), String> {
    macro_rules! plain {
        ($elements:expr) => {
            bytes.extend_from_slice(bytemuck::cast_slice(&$elements[..]))
        };
    }
    match tensor.data() {
        TensorData::F32(elements) => plain!(elements),
        TensorData::F64(elements) => plain!(elements),
        TensorData::F16(elements) => plain!(elements),
        TensorData::BF16(elements) => plain!(elements),
        TensorData::I8(elements) => plain!(elements),
        TensorData::I16(elements) => plain!(elements),
        TensorData::I32(elements) => plain!(elements),
        TensorData::I64(elements) => plain!(elements),
        TensorData::U8(elements) => plain!(elements),
        TensorData::U16(elements) => plain!(elements),
        TensorData::U32(elements) => plain!(elements),
        TensorData::U64(elements) => plain!(elements),
        TensorData::Bool(elements) => plain!(elements),
        TensorData::String(texts) => {
            for (index, text) in texts.iter().enumerate() {
                let length = u32::try_from(text.len())
                    .map_err(|_| format!("element {index} is longer than 4 GiB"))?;
                bytes.put_u32_le(length);
                bytes.extend_from_slice(text.as_bytes());
            }
        }
        TensorData::Complex64(_) | TensorData::Complex128(_) | TensorData::Narrow(..) => {
            return Err(nameless(tensor.data_type()));
        }
    }
    Ok(())
}

fn source_bytes(tensor: &Tensor) -> Option<Bytes> {
    wire_name(tensor.data_type())?;
    weft_ir::with_elements!(tensor, elements => elements.source_bytes().cloned())
}

/// What is wrong with a tensor of a type that the protocol has no name for.
pub(crate) fn nameless(data_type: DataType) -> String {
    format!("type {data_type} has no name in the protocol")
}
