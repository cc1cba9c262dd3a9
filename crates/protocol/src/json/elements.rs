//! The elements of a tensor as JSON: numbers, truth values or texts, in one array or nested as the shape says.

use half::{bf16, f16};
use weft_ir::{DataType, Element, Tensor};

use super::cursor::Cursor;
use super::number::Number;
use crate::data_types::wire_name;
use crate::error::clipped;
use crate::limits::MAX_RANK;
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
                let is_named = !number.text.ends_with(|last: char| last.is_ascii_digit());
                element
                    .filter(|element| element.is_finite() || is_named)
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
    let elements = read_nested::<T>(cursor, &shape, count)?;
    Tensor::from_vec(shape, elements).map_err(|error| error.to_string())
}

/// Reads `count` elements from one array, or from arrays nested as the shape says.
fn read_nested<T: JsonElement>(
    cursor: &mut Cursor<'_>,
    shape: &[usize],
    count: usize,
) -> Result<Vec<T>, String> {
    // An element takes two bytes at least, so what is reserved is in proportion to what was sent.
    let mut elements = Vec::with_capacity(count.min(cursor.remaining_bytes() / 2));
    // Entries seen so far of each array that is open.
    let mut entries = [0usize; MAX_RANK + 1];
    let mut depth = 0;
    let mut is_nested = false;
    loop {
        // Here a value begins.
        let mut is_closed = false;
        if cursor.takes(b'[') {
            let follows_elements = !is_nested && !elements.is_empty();
            if depth >= shape.len().max(1) || follows_elements {
                return Err(cursor.error("arrays are nested otherwise than the shape says"));
            }
            depth += 1;
            is_nested |= depth == 2;
            entries[depth] = 0;
            is_closed = cursor.takes(b']');
            if !is_closed {
                continue;
            }
        } else {
            if depth == 0 {
                return Err(cursor.error("an array of elements is missing"));
            }
            if is_nested && depth != shape.len() {
                return Err(cursor.error("arrays are nested otherwise than the shape says"));
            }
            if elements.len() == count {
                return Err(format!("more elements than the {count} of its shape"));
            }
            let index = elements.len();
            elements
                .push(T::read(cursor).map_err(|problem| format!("element {index}: {problem}"))?);
            entries[depth] += 1;
        }
        // Here a value has ended.
        loop {
            if !is_closed && cursor.another(b']')? {
                break;
            }
            is_closed = false;
            if is_nested && entries[depth] != shape[depth - 1] {
                return Err(cursor.error(&format!(
                    "an array of {} entries along a dimension of {} ends",
                    entries[depth],
                    shape[depth - 1]
                )));
            }
            depth -= 1;
            if depth == 0 {
                return match elements.len() == count {
                    true => Ok(elements),
                    false => Err(format!("{} elements, {count} by its shape", elements.len())),
                };
            }
            entries[depth] += 1;
        }
    }
}
