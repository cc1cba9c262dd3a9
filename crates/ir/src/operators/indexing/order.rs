//! The order of a tensor's elements, whatever their type.

use std::cmp::Ordering;

use half::{bf16, f16};

use crate::error::OperatorError;
use crate::tensor::{Tensor, TensorData};

/// Compares the elements at two offsets.
pub(super) type Comparison<'a> = Box<dyn Fn(usize, usize) -> Ordering + 'a>;

/// How the tensor's elements compare by offset; a NaN stands after every number and equals every other NaN.
pub(super) fn comparison(tensor: &Tensor) -> Result<Comparison<'_>, OperatorError> {
    macro_rules! compare {
        (total: $($total:ident),*; partial: $($partial:ident => $rust:ty),*) => {
            match tensor.data() {
                $(TensorData::$total(elements) => {
                    Box::new(|left, right| elements[left].cmp(&elements[right]))
                })*
                $(TensorData::$partial(elements) => Box::new(|left, right| {
                    let (left, right): ($rust, $rust) = (elements[left], elements[right]);
                    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
                }),)*
                _ => {
                    return Err(OperatorError::WrongType {
                        expected: "a type that has an order".into(),
                        given: tensor.data_type(),
                    });
                }
            }
        };
    }
    Ok(compare!(
        total: I8, I16, I32, I64, U8, U16, U32, U64, Bool, String;
        partial: F32 => f32, F64 => f64, F16 => f16, BF16 => bf16
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_comes_last_and_equals_itself() {
        let tensor = Tensor::vector(vec![1.0f32, f32::NAN, f32::INFINITY, f32::NAN]);
        let compare = comparison(&tensor).unwrap();
        assert_eq!(compare(1, 2), Ordering::Greater);
        assert_eq!(compare(0, 1), Ordering::Less);
        assert_eq!(compare(1, 3), Ordering::Equal);
    }
}
