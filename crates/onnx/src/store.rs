//! Where the elements of a written tensor go: into its message, or into a file beside the model's.

use std::fs::File;
use std::io::{BufWriter, Write};

use bytemuck::cast_slice;
use bytes::Bytes;
use weft_ir::{DataType, Tensor, TensorData};

use crate::proto::{StringStringEntryProto, TensorProto};
use crate::tensor::EXTERNAL;

/// Where elements in a data file start: on cache lines, so that every type is aligned where the file is mapped.
const ALIGNMENT_BYTES: u64 = 64;

/// Tensors smaller than this stay in the model file.
const MIN_EXTERNAL_BYTES: usize = 1024;

/// A file of elements that is being written.
pub(crate) struct DataFile {
    /// What the model calls it.
    pub(crate) location: String,
    file: BufWriter<File>,
    written: u64,
}

impl DataFile {
    pub(crate) fn new(location: String, file: File) -> Self {
        Self { location, file: BufWriter::new(file), written: 0 }
    }

    /// Adds elements and returns where they start.
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<u64> {
        let start = self.written.next_multiple_of(ALIGNMENT_BYTES);
        let padding = (start - self.written) as usize;
        self.file.write_all(&[0; ALIGNMENT_BYTES as usize][..padding])?;
        self.file.write_all(bytes)?;
        self.written = start + bytes.len() as u64;
        Ok(start)
    }

    /// Makes sure that everything has reached the file.
    pub(crate) fn finish(self) -> std::io::Result<()> {
        self.file.into_inner().map_err(|error| error.into_error())?.sync_all()
    }
}

/// A tensor's message; large tensors leave their elements in `beside`, where given.
pub(crate) fn write(
    name: &str,
    tensor: &Tensor,
    beside: Option<&mut DataFile>,
) -> std::io::Result<TensorProto> {
    let mut proto = TensorProto {
        name: name.to_string(),
        dims: tensor.shape().iter().map(|&size| size as i64).collect(),
        data_type: Some(tensor.data_type().onnx_code()),
        ..TensorProto::default()
    };
    let packed;
    let raw: &[u8] = match tensor.data() {
        TensorData::String(elements) => {
            let bytes = |text: &String| Bytes::copy_from_slice(text.as_bytes());
            proto.string_data = elements.iter().map(bytes).collect();
            return Ok(proto);
        }
        TensorData::Bool(elements) => {
            packed = elements.iter().map(|&element| u8::from(element)).collect::<Vec<u8>>();
            &packed
        }
        TensorData::Narrow(data_type, codes) if data_type.bits() < 8 => {
            packed = pack(codes, *data_type);
            &packed
        }
        TensorData::Narrow(_, codes) => codes,
        TensorData::F32(elements) => cast_slice(elements),
        TensorData::F64(elements) => cast_slice(elements),
        TensorData::F16(elements) => cast_slice(elements),
        TensorData::BF16(elements) => cast_slice(elements),
        TensorData::I8(elements) => cast_slice(elements),
        TensorData::I16(elements) => cast_slice(elements),
        TensorData::I32(elements) => cast_slice(elements),
        TensorData::I64(elements) => cast_slice(elements),
        TensorData::U8(elements) => elements,
        TensorData::U16(elements) => cast_slice(elements),
        TensorData::U32(elements) => cast_slice(elements),
        TensorData::U64(elements) => cast_slice(elements),
        TensorData::Complex64(elements) => cast_slice(elements),
        TensorData::Complex128(elements) => cast_slice(elements),
    };
    match beside.filter(|_| raw.len() >= MIN_EXTERNAL_BYTES) {
        None => proto.raw_data = Some(Bytes::copy_from_slice(raw)),
        Some(file) => {
            let offset = file.append(raw)?;
            let entry =
                |key: &str, value: String| StringStringEntryProto { key: key.into(), value };
            proto.data_location = Some(EXTERNAL);
            proto.external_data = vec![
                entry("location", file.location.clone()),
                entry("offset", offset.to_string()),
                entry("length", raw.len().to_string()),
            ];
        }
    }
    Ok(proto)
}

/// Several codes per byte from one code per byte, the first in the lowest bits.
fn pack(codes: &[u8], data_type: DataType) -> Vec<u8> {
    let bits = data_type.bits();
    let mask = (1u8 << bits) - 1;
    let byte = |chunk: &[u8]| {
        let shifted = chunk.iter().enumerate().map(|(index, code)| (code & mask) << (bits * index));
        shifted.fold(0, |byte, code| byte | code)
    };
    codes.chunks(8 / bits).map(byte).collect()
}
