//! Reading the integers that signal operators take as inputs, and writing floats as any numeric type.

use half::{bf16, f16};

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::tensor::Tensor;

/// The only integer of a tensor.
pub(super) fn scalar_integer(tensor: &Tensor) -> Result<i64, OperatorError> {
    match *tensor.to_i64s()? {
        [integer] => Ok(integer),
        ref other => Err(OperatorError::ElementCount { shape: vec![], given: other.len() }),
    }
}

/// A size that must be at least 1.
pub(super) fn positive(name: &str, integer: i64) -> Result<usize, OperatorError> {
    usize::try_from(integer)
        .ok()
        .filter(|&size| size > 0)
        .ok_or_else(|| OperatorError::Invalid(format!("{name} of {integer} is not positive")))
}

/// The type that a node's `output_datatype` names; `f32` where it names none.
pub(super) fn output_type(
    attributes: &crate::attribute::Attributes,
) -> Result<DataType, OperatorError> {
    let code = attributes.int_or("output_datatype", i64::from(DataType::F32.onnx_code()))?;
    DataType::from_onnx(code)
        .filter(|given| (given.is_integer() || given.is_float()) && !given.is_narrow())
        .ok_or_else(|| OperatorError::Attribute {
            name: "output_datatype".into(),
            problem: format!("{code} is not a numeric type"),
        })
}

/// A tensor of any numeric type from floats; integers lose the fraction.
pub(super) fn numeric_tensor(
    shape: Vec<usize>,
    data_type: DataType,
    elements: Vec<f64>,
) -> Result<Tensor, OperatorError> {
    macro_rules! write {
        ($($variant:ident => $convert:expr),* $(,)?) => {
            match data_type {
                $(DataType::$variant => {
                    Tensor::from_vec(shape, elements.into_iter().map($convert).collect())
                })*
                given => Err(OperatorError::WrongType { expected: "a number".into(), given }),
            }
        };
    }
    write! {
        F64 => |e| e, F32 => |e| e as f32, F16 => f16::from_f64, BF16 => bf16::from_f64,
        I8 => |e| e as i8, I16 => |e| e as i16, I32 => |e| e as i32, I64 => |e| e as i64,
        U8 => |e| e as u8, U16 => |e| e as u16, U32 => |e| e as u32, U64 => |e| e as u64,
    }
}
