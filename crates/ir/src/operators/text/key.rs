//! Keys: tensor elements that can be looked up in a table.

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::tensor::Tensor;

/// One element; a NaN equals every other NaN, and zeros are equal whatever their sign.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::operators) enum Key {
    Text(String),
    Integer(i64),
    /// The bits of the number as `f64`.
    Float(u64),
}

/// The elements of a tensor of strings or numbers.
pub(in crate::operators) fn keys(tensor: &Tensor) -> Result<Vec<Key>, OperatorError> {
    match tensor.data_type() {
        DataType::String => {
            Ok(tensor.elements::<String>()?.iter().cloned().map(Key::Text).collect())
        }
        kind if kind.is_integer() => {
            Ok(tensor.to_i64s()?.iter().copied().map(Key::Integer).collect())
        }
        _ => Ok(tensor.to_f64s()?.into_iter().map(float).collect()),
    }
}

fn float(number: f64) -> Key {
    let normal = if number.is_nan() { f64::NAN } else { number + 0.0 };
    Key::Float(normal.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_one_key() {
        assert_eq!(float(-0.0), float(0.0));
        assert_eq!(float(f64::NAN), float(-f64::NAN));
        assert_ne!(float(1.0), float(2.0));
    }
}
