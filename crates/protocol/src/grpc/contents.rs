//! Tensors whose elements a message carries as numbers instead of bytes.

use bytes::Bytes;
use weft_ir::{DataType, Element, Tensor};

use super::inference::InferTensorContents;
use crate::shape;

/// The tensor of this type and shape with these contents.
pub(super) fn tensor(
    data_type: DataType,
    shape: Vec<usize>,
    contents: InferTensorContents,
) -> Result<Tensor, String> {
    let count = shape::count(&shape, data_type)?;
    let check = |given: usize| match given == count {
        true => Ok(()),
        false => Err(format!("{given} elements in its contents, {count} by its shape")),
    };
    macro_rules! take {
        ($field:ident) => {{
            check(contents.$field.len())?;
            Tensor::from_vec(shape, contents.$field).map_err(|error| error.to_string())
        }};
        ($field:ident as $narrow:ty) => {{
            check(contents.$field.len())?;
            narrowed::<_, $narrow>(shape, contents.$field)
        }};
    }
    match data_type {
        DataType::Bool => take!(bool_contents),
        DataType::I8 => take!(int_contents as i8),
        DataType::I16 => take!(int_contents as i16),
        DataType::I32 => take!(int_contents),
        DataType::I64 => take!(int64_contents),
        DataType::U8 => take!(uint_contents as u8),
        DataType::U16 => take!(uint_contents as u16),
        DataType::U32 => take!(uint_contents),
        DataType::U64 => take!(uint64_contents),
        DataType::F32 => take!(fp32_contents),
        DataType::F64 => take!(fp64_contents),
        DataType::String => {
            check(contents.bytes_contents.len())?;
            let texts = contents.bytes_contents.iter().enumerate();
            let texts = texts.map(|(index, bytes)| text(index, bytes)).collect::<Result<_, _>>()?;
            Tensor::from_vec::<String>(shape, texts).map_err(|error| error.to_string())
        }
        other => Err(format!("{other} must be sent as raw contents")),
    }
}

fn text(index: usize, bytes: &Bytes) -> Result<String, String> {
    match str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(format!("element {index} is not UTF-8")),
    }
}

fn narrowed<W, N>(shape: Vec<usize>, elements: Vec<W>) -> Result<Tensor, String>
where
    W: Copy + std::fmt::Display,
    N: TryFrom<W> + Element,
{
    let narrow = |(index, element)| {
        N::try_from(element)
            .map_err(|_| format!("element {index} is {element}, no {}", N::DATA_TYPE))
    };
    let elements = elements.into_iter().enumerate().map(narrow).collect::<Result<Vec<N>, _>>()?;
    Tensor::from_vec(shape, elements).map_err(|error| error.to_string())
}
