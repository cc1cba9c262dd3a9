//! Conversion of elements between any two types, as Cast means it.

use half::{bf16, f16};

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::narrow::{Rounding, decode, encode};
use crate::tensor::{Tensor, TensorData, checked_count};

/// The tensor with its elements converted to type `to`.
///
/// Integers that do not fit lose their high bits; floats that do not fit an integer saturate; text is parsed.
/// Complex numbers convert only among themselves.
pub fn convert(x: &Tensor, to: DataType, rounding: Rounding) -> Result<Tensor, OperatorError> {
    if x.data_type() == to {
        return Ok(x.clone());
    }
    checked_count(x.shape(), to)?;
    let data = match x.data() {
        TensorData::F32(elements) => from_number(elements, to, rounding),
        TensorData::F64(elements) => from_number(elements, to, rounding),
        TensorData::F16(elements) => {
            from_number(&elements.iter().map(|x| x.to_f32()).collect::<Vec<_>>(), to, rounding)
        }
        TensorData::BF16(elements) => {
            from_number(&elements.iter().map(|x| x.to_f32()).collect::<Vec<_>>(), to, rounding)
        }
        TensorData::I8(elements) => from_number(elements, to, rounding),
        TensorData::I16(elements) => from_number(elements, to, rounding),
        TensorData::I32(elements) => from_number(elements, to, rounding),
        TensorData::I64(elements) => from_number(elements, to, rounding),
        TensorData::U8(elements) => from_number(elements, to, rounding),
        TensorData::U16(elements) => from_number(elements, to, rounding),
        TensorData::U32(elements) => from_number(elements, to, rounding),
        TensorData::U64(elements) => from_number(elements, to, rounding),
        TensorData::Bool(elements) => {
            from_number(&elements.iter().map(|&x| u8::from(x)).collect::<Vec<_>>(), to, rounding)
        }
        TensorData::Narrow(data_type, codes) => {
            let numbers: Vec<f32> = codes.iter().map(|&code| decode(*data_type, code)).collect();
            from_number(&numbers, to, rounding)
        }
        TensorData::String(texts) => return from_texts(x, texts, to, rounding),
        TensorData::Complex64(elements) if to == DataType::Complex128 => {
            Some(TensorData::Complex128(
                elements.iter().map(|x| x.map(f64::from)).collect::<Vec<_>>().into(),
            ))
        }
        TensorData::Complex128(elements) if to == DataType::Complex64 => {
            Some(TensorData::Complex64(
                elements.iter().map(|x| x.map(|x| x as f32)).collect::<Vec<_>>().into(),
            ))
        }
        TensorData::Complex64(_) | TensorData::Complex128(_) => None,
    };
    let data = data.ok_or_else(|| OperatorError::WrongType {
        expected: format!("a type that converts to {to}"),
        given: x.data_type(),
    })?;
    Tensor::new(x.shape().to_vec(), data)
}

/// A native number, from which all others can be made.
trait Source: Copy + PartialEq + Default + ToString {
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    fn to_i8(self) -> i8;
    fn to_i16(self) -> i16;
    fn to_i32(self) -> i32;
    fn to_i64(self) -> i64;
    fn to_u8(self) -> u8;
    fn to_u16(self) -> u16;
    fn to_u32(self) -> u32;
    fn to_u64(self) -> u64;
    fn to_text(self) -> String {
        self.to_string()
    }
}

macro_rules! sources {
    ($($source:ident { $($extra:item)? })*) => {$(
        impl Source for $source {
            fn to_f32(self) -> f32 { self as f32 }
            fn to_f64(self) -> f64 { self as f64 }
            fn to_i8(self) -> i8 { self as i8 }
            fn to_i16(self) -> i16 { self as i16 }
            fn to_i32(self) -> i32 { self as i32 }
            fn to_i64(self) -> i64 { self as i64 }
            fn to_u8(self) -> u8 { self as u8 }
            fn to_u16(self) -> u16 { self as u16 }
            fn to_u32(self) -> u32 { self as u32 }
            fn to_u64(self) -> u64 { self as u64 }
            $($extra)?
        }
    )*};
}
sources! {
    f32 { fn to_text(self) -> String { float_text(self.into(), self.to_string()) } }
    f64 { fn to_text(self) -> String { float_text(self, self.to_string()) } }
    i8 {}
    i16 {}
    i32 {}
    i64 {}
    u8 {}
    u16 {}
    u32 {}
    u64 {}
}

/// Infinities have names of their own in ONNX.
fn float_text(value: f64, text: String) -> String {
    match value {
        f64::INFINITY => "INF".to_string(),
        f64::NEG_INFINITY => "-INF".to_string(),
        _ => text,
    }
}

fn from_number<T: Source>(elements: &[T], to: DataType, rounding: Rounding) -> Option<TensorData> {
    fn all<T: Source, R>(elements: &[T], convert: impl Fn(T) -> R) -> crate::Array<R> {
        elements.iter().map(|&element| convert(element)).collect::<Vec<R>>().into()
    }
    // Only the low bits count, and only those of an integer: what is out of range wraps, as wider integers do.
    let low_bits = |element: T| element.to_i64() as u8;
    let sign_extended =
        |element: T, bits: u32| ((low_bits(element) << (8 - bits)) as i8 >> (8 - bits)) as u8;
    Some(match to {
        DataType::F32 => TensorData::F32(all(elements, T::to_f32)),
        DataType::F64 => TensorData::F64(all(elements, T::to_f64)),
        DataType::F16 => TensorData::F16(all(elements, |x| f16::from_f64(x.to_f64()))),
        DataType::BF16 => TensorData::BF16(all(elements, |x| bf16::from_f64(x.to_f64()))),
        DataType::I8 => TensorData::I8(all(elements, T::to_i8)),
        DataType::I16 => TensorData::I16(all(elements, T::to_i16)),
        DataType::I32 => TensorData::I32(all(elements, T::to_i32)),
        DataType::I64 => TensorData::I64(all(elements, T::to_i64)),
        DataType::U8 => TensorData::U8(all(elements, T::to_u8)),
        DataType::U16 => TensorData::U16(all(elements, T::to_u16)),
        DataType::U32 => TensorData::U32(all(elements, T::to_u32)),
        DataType::U64 => TensorData::U64(all(elements, T::to_u64)),
        DataType::Bool => TensorData::Bool(all(elements, |x| x != T::default())),
        DataType::String => TensorData::String(all(elements, T::to_text)),
        DataType::I4 => TensorData::Narrow(to, all(elements, |x| sign_extended(x, 4))),
        DataType::I2 => TensorData::Narrow(to, all(elements, |x| sign_extended(x, 2))),
        DataType::U4 => TensorData::Narrow(to, all(elements, |x| low_bits(x) & 0xF)),
        DataType::U2 => TensorData::Narrow(to, all(elements, |x| low_bits(x) & 0x3)),
        DataType::F8E4M3FN
        | DataType::F8E4M3FNUZ
        | DataType::F8E5M2
        | DataType::F8E5M2FNUZ
        | DataType::F8E8M0
        | DataType::F4E2M1 => {
            TensorData::Narrow(to, all(elements, |x| encode(to, x.to_f32(), rounding)))
        }
        DataType::Complex64 | DataType::Complex128 => return None,
    })
}

/// Text that reads as integers only is kept exact; anything else goes through `f64`.
fn from_texts(
    x: &Tensor,
    texts: &[String],
    to: DataType,
    rounding: Rounding,
) -> Result<Tensor, OperatorError> {
    let shape = x.shape().to_vec();
    if to.is_integer()
        && let Ok(integers) =
            texts.iter().map(|text| text.trim().parse::<i64>()).collect::<Result<Vec<_>, _>>()
    {
        return convert(&Tensor::from_vec(shape, integers)?, to, rounding);
    }
    let parse = |text: &String| match text.trim() {
        "true" | "True" => Ok(1.0),
        "false" | "False" => Ok(0.0),
        number => number
            .parse::<f64>()
            .map_err(|_| OperatorError::Invalid(format!("'{number}' does not read as a number"))),
    };
    let numbers = texts.iter().map(parse).collect::<Result<Vec<f64>, _>>()?;
    convert(&Tensor::from_vec(shape, numbers)?, to, rounding)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(x: Tensor, to: DataType) -> Tensor {
        convert(&x, to, Rounding::default()).unwrap()
    }

    #[test]
    fn every_pair_of_real_types_converts_there_and_back() {
        let types: Vec<DataType> = (1..=26).filter_map(DataType::from_onnx).collect();
        let is_complex = |t| matches!(t, DataType::Complex64 | DataType::Complex128);
        for &from in types.iter().filter(|&&from| !is_complex(from)) {
            let ones = converted(Tensor::vector(vec![1f32, 1.0]), from);
            assert_eq!(ones.data_type(), from);
            for &to in types.iter().filter(|&&to| !is_complex(to)) {
                let back = converted(converted(ones.clone(), to), DataType::F32);
                assert_eq!(back.elements::<f32>().unwrap(), [1.0; 2], "{from} {to}");
            }
        }
        assert!(convert(&Tensor::scalar([1f32, 0.0]), DataType::F32, Rounding::default()).is_err());
    }

    #[test]
    fn what_does_not_fit_wraps_or_saturates() {
        let wrapped = converted(Tensor::vector(vec![200i16, -1]), DataType::I8);
        assert_eq!(wrapped.elements::<i8>().unwrap(), [-56, -1]);
        let saturated = converted(Tensor::vector(vec![1e9f32, f32::NAN, -1e9]), DataType::I16);
        assert_eq!(saturated.elements::<i16>().unwrap(), [i16::MAX, 0, i16::MIN]);
        let narrow = converted(Tensor::vector(vec![8i32, -9, 7]), DataType::I4);
        let back = converted(narrow, DataType::I8);
        assert_eq!(back.elements::<i8>().unwrap(), [-8, 7, 7]);
    }

    #[test]
    fn text_is_read_and_written() {
        let texts = ["1e-5", "+INF", "nan", " -3.5 "].map(String::from).to_vec();
        let numbers = converted(Tensor::vector(texts), DataType::F32);
        let numbers = numbers.elements::<f32>().unwrap();
        assert_eq!((numbers[0], numbers[1], numbers[3]), (1e-5, f32::INFINITY, -3.5));
        assert!(numbers[2].is_nan());
        let exact = converted(Tensor::vector(vec!["9007199254740993".to_string()]), DataType::I64);
        assert_eq!(exact.only::<i64>(), Ok(9007199254740993));
        let texts =
            converted(Tensor::vector(vec![0.1f32, f32::NEG_INFINITY, 3.0]), DataType::String);
        assert_eq!(texts.elements::<String>().unwrap(), ["0.1", "-INF", "3"]);
        let hello = Tensor::scalar("Hello".to_string());
        assert!(convert(&hello, DataType::F32, Rounding::default()).is_err());
    }
}
