//! The numbers that generated code computes with.

use weft_ir::Tensor;

use crate::Storage;

/// What an element is while it is computed with: every float is a `float`, whatever it is stored as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Float,
    I64,
    I32,
    U8,
    I8,
    Bool,
}

impl Number {
    /// What elements of a storage type are computed as.
    pub(crate) fn of(storage: Storage) -> Self {
        match storage {
            Storage::F16 | Storage::Bf16 | Storage::F32 => Number::Float,
            Storage::I64 => Number::I64,
            Storage::I32 => Number::I32,
            Storage::U8 => Number::U8,
            Storage::I8 => Number::I8,
            Storage::Bool => Number::Bool,
        }
    }

    /// The type's name in kernels.
    pub(crate) fn cuda_name(self) -> &'static str {
        match self {
            Number::Float => "float",
            Number::I64 => "long long",
            Number::I32 => "int",
            Number::U8 => "unsigned char",
            Number::I8 => "signed char",
            Number::Bool => "bool",
        }
    }

    /// True for integers, and not for bools.
    pub(crate) fn is_integer(self) -> bool {
        !matches!(self, Number::Float | Number::Bool)
    }

    /// The only element of a tensor as it is written in code; `None` where there are several, or of another type.
    pub(crate) fn literal(self, tensor: &Tensor) -> Option<String> {
        Some(match self {
            Number::Float => match tensor.to_f32s().ok()?[..] {
                [only] => float_literal(only),
                _ => return None,
            },
            Number::I64 => match tensor.only::<i64>().ok()? {
                // Its magnitude alone would not fit.
                i64::MIN => "(-9223372036854775807LL - 1)".into(),
                only => format!("({only}LL)"),
            },
            Number::I32 => format!("(int){}LL", tensor.only::<i32>().ok()?),
            Number::U8 => format!("(unsigned char){}", tensor.only::<u8>().ok()?),
            Number::I8 => format!("(signed char){}", tensor.only::<i8>().ok()?),
            Number::Bool => tensor.only::<bool>().ok()?.to_string(),
        })
    }
}

/// A float as it is written in code, exactly.
pub(crate) fn float_literal(value: f32) -> String {
    if value.is_finite() && value.is_sign_negative() {
        // In brackets, so that a minus may stand before it.
        format!("({value:?}f)")
    } else if value.is_finite() {
        format!("{value:?}f")
    } else {
        format!("__uint_as_float({:#x}u)", value.to_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_exact() {
        let floats = [
            (0.1, "0.1f"),
            (1e-5, "1e-5f"),
            (-3.0, "(-3.0f)"),
            (f32::NEG_INFINITY, "__uint_as_float(0xff800000u)"),
        ];
        for (value, text) in floats {
            assert_eq!(float_literal(value), text);
        }
        assert_eq!(Number::I64.literal(&Tensor::scalar(7i64)).unwrap(), "(7LL)");
        assert!(Number::I64.literal(&Tensor::scalar(i64::MIN)).unwrap().ends_with("LL - 1)"));
        assert_eq!(Number::Bool.literal(&Tensor::scalar(true)).unwrap(), "true");
        assert_eq!(Number::I32.literal(&Tensor::vector(vec![1i32, 2])), None);
        assert_eq!(Number::Float.literal(&Tensor::scalar(1i32)), None);
    }
}
