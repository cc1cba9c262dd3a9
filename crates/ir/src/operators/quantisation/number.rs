//! Quantised numbers of every type: what they mean, and the nearest one to a number.

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::narrow::{Rounding, decode, encode};
use crate::tensor::{Tensor, TensorData};

/// The least and the greatest number of an integer type that tensors are quantised to.
fn integer_range(data_type: DataType) -> Option<(f64, f64)> {
    Some(match data_type {
        DataType::I2 => (-2.0, 1.0),
        DataType::U2 => (0.0, 3.0),
        DataType::I4 => (-8.0, 7.0),
        DataType::U4 => (0.0, 15.0),
        DataType::I8 => (-128.0, 127.0),
        DataType::U8 => (0.0, 255.0),
        DataType::I16 => (-32768.0, 32767.0),
        DataType::U16 => (0.0, 65535.0),
        _ => return None,
    })
}

/// The numbers that a quantised tensor holds; `f64` holds each of them exactly.
pub(super) fn read(tensor: &Tensor) -> Result<Vec<f64>, OperatorError> {
    match tensor.data() {
        TensorData::Narrow(data_type, codes) => {
            Ok(codes.iter().map(|&code| decode(*data_type, code).into()).collect())
        }
        _ => Ok(tensor.to_i64s()?.iter().map(|&integer| integer as f64).collect()),
    }
}

/// The numbers of a quantised tensor, or of a float one: what scales and unquantised inputs are read with.
pub(super) fn read_any(tensor: &Tensor) -> Result<Vec<f64>, OperatorError> {
    match tensor.data_type() {
        DataType::F16 | DataType::BF16 | DataType::F32 | DataType::F64 => tensor.to_f64s(),
        _ => read(tensor),
    }
}

/// A number as close to `value` as the float type has one.
pub(super) fn rounded(value: f64, precision: DataType) -> f64 {
    match precision {
        DataType::F16 => half::f16::from_f64(value).to_f64(),
        DataType::BF16 => half::bf16::from_f64(value).to_f64(),
        DataType::F32 => f64::from(value as f32),
        _ => value,
    }
}

/// Whether tensors can be quantised to this type.
pub(super) fn is_quantised(data_type: DataType) -> bool {
    integer_range(data_type).is_some()
        || (data_type.is_narrow_float() && data_type != DataType::F8E8M0)
}

/// A quantised tensor: each pair of a number and its zero point gives one element. Integers are rounded half to even
/// before the zero point is added and saturate after; narrow floats saturate where asked.
pub(super) fn write(
    shape: Vec<usize>,
    data_type: DataType,
    numbers: impl Iterator<Item = (f64, f64)>,
    saturate: bool,
) -> Result<Tensor, OperatorError> {
    let Some((least, greatest)) = integer_range(data_type) else {
        if !is_quantised(data_type) {
            return Err(OperatorError::WrongType {
                expected: "a quantised type".into(),
                given: data_type,
            });
        }
        let rounding = Rounding { saturate, ..Rounding::default() };
        let codes: Vec<u8> = numbers
            .map(|(number, zero)| {
                // Implementations of the standard leave minus zero alone in 8 bits and make it zero in 4.
                let is_left = zero == 0.0 && data_type.bits() == 8;
                let number = if is_left { number } else { number + zero };
                encode(data_type, number as f32, rounding)
            })
            .collect();
        return Tensor::new(shape, TensorData::Narrow(data_type, codes.into()));
    };
    let integers =
        numbers.map(|(number, zero)| (number.round_ties_even() + zero).clamp(least, greatest));
    match data_type {
        DataType::I8 => Tensor::from_vec(shape, integers.map(|e| e as i8).collect()),
        DataType::U8 => Tensor::from_vec(shape, integers.map(|e| e as u8).collect()),
        DataType::I16 => Tensor::from_vec(shape, integers.map(|e| e as i16).collect()),
        DataType::U16 => Tensor::from_vec(shape, integers.map(|e| e as u16).collect()),
        DataType::U2 | DataType::U4 => {
            let codes: Vec<u8> = integers.map(|e| e as u8).collect();
            Tensor::new(shape, TensorData::Narrow(data_type, codes.into()))
        }
        _ => {
            let codes: Vec<u8> = integers.map(|e| e as i8 as u8).collect();
            Tensor::new(shape, TensorData::Narrow(data_type, codes.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_round_to_even_then_shift_then_saturate() {
        let given = [0.5, 1.5, 2.5, -0.5, -1.5, 1e30, -1e30, f64::INFINITY];
        for (data_type, zero, expected) in [
            (DataType::U8, 3.0, [3.0, 5.0, 5.0, 3.0, 1.0, 255.0, 0.0, 255.0]),
            (DataType::I8, 1.0, [1.0, 3.0, 3.0, 1.0, -1.0, 127.0, -128.0, 127.0]),
            (DataType::I16, 0.0, [0.0, 2.0, 2.0, 0.0, -2.0, 32767.0, -32768.0, 32767.0]),
            (DataType::I4, -7.0, [-7.0, -5.0, -5.0, -7.0, -8.0, 7.0, -8.0, 7.0]),
            (DataType::U2, 1.0, [1.0, 3.0, 3.0, 1.0, 0.0, 3.0, 0.0, 3.0]),
            (DataType::I2, -1.0, [-1.0, 1.0, 1.0, -1.0, -2.0, 1.0, -2.0, 1.0]),
        ] {
            let numbers = given.iter().map(|&number| (number, zero));
            let tensor = write(vec![given.len()], data_type, numbers, true).unwrap();
            assert_eq!(tensor.data_type(), data_type);
            assert_eq!(read(&tensor).unwrap(), expected, "{data_type}");
        }
    }

    #[test]
    fn only_quantised_types_are_written() {
        for data_type in [DataType::I32, DataType::F32, DataType::F8E8M0, DataType::Bool] {
            assert!(write(vec![1], data_type, [(0.0, 0.0)].into_iter(), true).is_err());
        }
    }
}
