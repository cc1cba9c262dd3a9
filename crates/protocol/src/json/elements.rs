//! The elements of a tensor as JSON: numbers, truth values or texts, in one array or nested as the shape says.

use half::{bf16, f16};
use weft_ir::{DataType, Element, Tensor};

use super::cursor::Cursor;
use super::number::Number;
use crate::data_types::wire_name;
use crate::error::clipped;
use crate::shape;

/// Reads the elements of a tensor of this type and shape.
pub(super) fn read_tensor(
    cursor: &mut Cursor<'_>,
    data_type: DataType,
    shape: Vec<usize>,
) -> Result<Tensor, String> {
    match data_type {
        DataType::F32 => read::<f32>(cursor, shape),
        DataType::F64 => read::<f64>(cursor, shape),
        DataType::F16 => read::<f16>(cursor, shape),
        DataType::BF16 => read::<bf16>(cursor, shape),
        DataType::I8 => read::<i8>(cursor, shape),
        DataType::I16 => read::<i16>(cursor, shape),
        DataType::I32 => read::<i32>(cursor, shape),
        DataType::I64 => read::<i64>(cursor, shape),
        DataType::U8 => read::<u8>(cursor, shape),
        DataType::U16 => read::<u16>(cursor, shape),
        DataType::U32 => read::<u32>(cursor, shape),
        DataType::U64 => read::<u64>(cursor, shape),
        DataType::Bool => read::<bool>(cursor, shape),
        DataType::String => read::<String>(cursor, shape),
        other => Err(crate::raw::nameless(other)),
    }
}

/// An element that JSON has a form for.
trait JsonElement: Element {
    /// Reads one, or says what stands there instead.
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, String>;
}

/// What is wrong with a number that is none of this type.
fn unfit<T: Element>(number: &str) -> String {
    format!("{} is no {}", clipped(number), wire_name(T::DATA_TYPE).unwrap_or_default())
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl JsonElement for $integer {
            fn read(cursor: &mut Cursor<'_>) -> Result<Self, String> {
                let number = cursor.number()?.text;
                number.parse().map_err(|_| unfit::<Self>(number))
            }
        }
    )*};
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! floats {
    ($($float:ty: $nearest:expr),*) => {$(
        impl JsonElement for $float {
            fn read(cursor: &mut Cursor<'_>) -> Result<Self, String> {
                let number = cursor.number()?;
                let element: Option<Self> = $nearest(number);
                // A finite number that rounds to infinity is not what was meant; what is not finite ends with a letter.
                let is_named = || !number.text.ends_with(|last: char| last.is_ascii_digit());
                element
                    .filter(|element| element.is_finite() || is_named())
                    .ok_or_else(|| unfit::<Self>(number.text))
            }
        }
    )*};
}

floats! {
    f32: Number::to_f32,
    f64: Number::to_f64,
    f16: |number: Number<'_>| number.text.parse().ok(),
    bf16: |number: Number<'_>| number.text.parse().ok()
}

impl JsonElement for bool {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, String> {
        match cursor.bool() {
            Some(element) => Ok(element),
            None => match cursor.number()?.text {
                "0" => Ok(false),
                "1" => Ok(true),
                number => Err(unfit::<Self>(number)),
            },
        }
    }
}

impl JsonElement for String {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, String> {
        cursor.text().map(|text| text.into_owned())
    }
}

fn read<T: JsonElement>(cursor: &mut Cursor<'_>, shape: Vec<usize>) -> Result<Tensor, String> {
    let count = shape::count(&shape, T::DATA_TYPE)?;
    // An element takes two bytes at least, so what is reserved is in proportion to what was sent.
    let mut elements = Vec::with_capacity(count.min(cursor.remaining_bytes() / 2));
    let mut ahead = cursor.clone();
    let is_nested = ahead.takes(b'[') && ahead.peek() == Some(b'[');
    match is_nested {
        true => read_nested::<T>(cursor, &shape, &mut elements)?,
        false => read_array::<T>(cursor, count, &mut elements, read_element)?,
    }
    Tensor::from_vec(shape, elements).map_err(|error| error.to_string())
}

/// Reads arrays nested as the shape says, as deep as it has dimensions.
fn read_nested<T: JsonElement>(
    cursor: &mut Cursor<'_>,
    shape: &[usize],
    elements: &mut Vec<T>,
) -> Result<(), String> {
    match shape {
        [] => read_element(cursor, elements),
        [length, inner @ ..] => read_array(cursor, *length, elements, |cursor, elements| {
            read_nested(cursor, inner, elements)
        }),
    }
}

/// Reads an array of exactly `length` entries.
fn read_array<T: JsonElement>(
    cursor: &mut Cursor<'_>,
    length: usize,
    elements: &mut Vec<T>,
    read_entry: impl Fn(&mut Cursor<'_>, &mut Vec<T>) -> Result<(), String>,
) -> Result<(), String> {
    let mut entries = 0;
    cursor.array(|cursor| {
        if entries == length {
            return Err(cursor.error(&format!("more than {length} entries, as the shape says,")));
        }
        entries += 1;
        read_entry(cursor, elements)
    })?;
    match entries == length {
        true => Ok(()),
        false => Err(cursor
            .error(&format!("an array of {entries} entries, where the shape says {length}, ends"))),
    }
}

fn read_element<T: JsonElement>(
    cursor: &mut Cursor<'_>,
    elements: &mut Vec<T>,
) -> Result<(), String> {
    let element =
        T::read(cursor).map_err(|problem| format!("element {}: {problem}", elements.len()))?;
    elements.push(element);
    Ok(())
}
