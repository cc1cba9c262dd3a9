//! Writing JSON: members of objects, and the elements of tensors.

use weft_ir::{DataType, Tensor, TensorData};

use super::body::EncodedBody;
use crate::data_types::wire_name;
use crate::error::ProtocolError;
use crate::infer::RegionRange;
use crate::parameters::{OFFSET, REGION, SIZE};
use crate::raw::{append_raw, nameless, raw_size_bytes};

/// An object that is being written.
pub(super) struct Members<'a> {
    out: &'a mut Vec<u8>,
    separator: u8,
}

impl<'a> Members<'a> {
    pub(super) fn open(out: &'a mut Vec<u8>) -> Self {
        Self { out, separator: b'{' }
    }

    pub(super) fn close(self) {
        if self.separator == b'{' {
            self.out.push(b'{');
        }
        self.out.push(b'}');
    }

    /// Begins a member, whose value is to be appended to what this gives.
    pub(super) fn value(&mut self, name: &str) -> &mut Vec<u8> {
        self.out.push(self.separator);
        self.separator = b',';
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        append_text(self.value(name), value);
    }

    pub(super) fn integer(&mut self, name: &str, value: u64) {
        let out = self.value(name);
        out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }

    pub(super) fn bool(&mut self, name: &str, value: bool) {
        append_bool(self.value(name), value);
    }

    pub(super) fn array<'t, T>(
        &mut self,
        name: &str,
        entries: &'t [T],
        mut write: impl FnMut(&mut Vec<u8>, &'t T) -> Result<(), ProtocolError>,
    ) -> Result<(), ProtocolError> {
        let out = self.value(name);
        out.push(b'[');
        for (index, entry) in entries.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write(out, entry)?;
        }
        out.push(b']');
        Ok(())
    }

    /// The members that every tensor has.
    pub(super) fn tensor(
        &mut self,
        name: &str,
        data_type: DataType,
        shape: &[usize],
    ) -> Result<(), String> {
        self.text("name", name);
        let datatype = wire_name(data_type).ok_or_else(|| nameless(data_type))?;
        self.text("datatype", datatype);
        let mut buffer = itoa::Buffer::new();
        append_array(self.value("shape"), shape, |out, &dimension| {
            out.extend_from_slice(buffer.format(dimension).as_bytes());
        });
        Ok(())
    }

    /// The parameter of a tensor that is sent as bytes.
    pub(super) fn binary_size(&mut self, size_bytes: usize) {
        let mut parameters = Members::open(self.value("parameters"));
        parameters.integer("binary_data_size", size_bytes as u64);
        parameters.close();
    }

    /// The parameters of a tensor in shared memory.
    pub(super) fn place(&mut self, range: &RegionRange) {
        let mut parameters = Members::open(self.value("parameters"));
        parameters.range(range);
        parameters.close();
    }

    pub(super) fn range(&mut self, range: &RegionRange) {
        self.text(REGION, &range.region);
        self.integer(OFFSET, range.offset_bytes as u64);
        self.integer(SIZE, range.size_bytes as u64);
    }
}

/// The tensors that follow a header as bytes.
#[derive(Default)]
pub(super) struct BinaryParts<'a> {
    tensors: Vec<(&'a str, &'a Tensor)>,
    size_bytes: usize,
}

impl<'a> BinaryParts<'a> {
    /// Lets a tensor follow, and says how many bytes it takes.
    pub(super) fn add(&mut self, name: &'a str, tensor: &'a Tensor) -> usize {
        let size_bytes = raw_size_bytes(tensor);
        self.tensors.push((name, tensor));
        self.size_bytes += size_bytes;
        size_bytes
    }

    /// The whole body.
    pub(super) fn follow(self, header: Vec<u8>) -> Result<EncodedBody, ProtocolError> {
        let size_bytes = (!self.tensors.is_empty()).then_some(self.size_bytes);
        EncodedBody::new(header, size_bytes, |body| {
            for (name, tensor) in self.tensors {
                append_raw(tensor, body).map_err(|problem| ProtocolError::tensor(name, problem))?;
            }
            Ok(())
        })
    }
}

/// Appends the elements of a tensor as one flat array.
pub(super) fn append_elements(out: &mut Vec<u8>, tensor: &Tensor) -> Result<(), String> {
    macro_rules! integers {
        ($elements:expr) => {{
            let mut buffer = itoa::Buffer::new();
            append_array(out, $elements, |out, &element| {
                out.extend_from_slice(buffer.format(element).as_bytes());
            });
        }};
    }
    macro_rules! floats {
        ($elements:expr, $float:ty) => {{
            let mut buffer = zmij::Buffer::new();
            append_array(out, $elements, |out, &element| {
                let element = <$float>::from(element);
                if element.is_finite() {
                    out.extend_from_slice(buffer.format_finite(element).as_bytes());
                } else {
                    out.extend_from_slice(non_finite(element.into()).as_bytes());
                }
            });
        }};
    }
    match tensor.data() {
        TensorData::F32(elements) => floats!(elements, f32),
        TensorData::F64(elements) => floats!(elements, f64),
        TensorData::F16(elements) => floats!(elements, f32),
        TensorData::BF16(elements) => floats!(elements, f32),
        TensorData::I8(elements) => integers!(elements),
        TensorData::I16(elements) => integers!(elements),
        TensorData::I32(elements) => integers!(elements),
        TensorData::I64(elements) => integers!(elements),
        TensorData::U8(elements) => integers!(elements),
        TensorData::U16(elements) => integers!(elements),
        TensorData::U32(elements) => integers!(elements),
        TensorData::U64(elements) => integers!(elements),
        TensorData::Bool(elements) => append_array(out, elements, |out, &e| append_bool(out, e)),
        TensorData::String(texts) => append_array(out, texts, |out, text| append_text(out, text)),
        TensorData::Complex64(_) | TensorData::Complex128(_) | TensorData::Narrow(..) => {
            return Err(nameless(tensor.data_type()));
        }
    }
    Ok(())
}

fn append_array<T>(out: &mut Vec<u8>, entries: &[T], mut append: impl FnMut(&mut Vec<u8>, &T)) {
    // Room for a digit and a comma; numbers that need more make it grow.
    out.reserve(2 * entries.len() + 2);
    out.push(b'[');
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        append(out, entry);
    }
    out.push(b']');
}

fn append_bool(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

fn append_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a text can be written into memory");
}

fn non_finite(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}
