//! The numbers that products are summed in: what matrix products and convolutions need of an element type.

use std::borrow::Cow;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::tensor::Tensor;

/// A number that products are summed in. Integers wrap; floats of 16 bits are computed as `f32`.
pub(crate) trait Scalar: Copy + Default + PartialOrd + Send + Sync + 'static {
    /// The least value: what the maximum of nothing is.
    const LOWEST: Self;
    /// One.
    const ONE: Self;

    /// `self + left * right`.
    fn multiply_add(self, left: Self, right: Self) -> Self;

    /// The product with a factor as attributes write it.
    fn scaled(self, factor: f32) -> Self;

    /// A tensor's elements, where they are computed as this type.
    fn read(tensor: &Tensor) -> Result<Cow<'_, [Self]>, OperatorError>;

    /// A tensor of `data_type`, which must be one that is computed as this type.
    fn write(
        shape: Vec<usize>,
        data_type: DataType,
        elements: Vec<Self>,
    ) -> Result<Tensor, OperatorError>;
}

impl Scalar for f32 {
    const LOWEST: Self = f32::NEG_INFINITY;
    const ONE: Self = 1.0;

    fn multiply_add(self, left: Self, right: Self) -> Self {
        self + left * right
    }

    fn scaled(self, factor: f32) -> Self {
        self * factor
    }

    fn read(tensor: &Tensor) -> Result<Cow<'_, [Self]>, OperatorError> {
        tensor.to_f32s()
    }

    fn write(
        shape: Vec<usize>,
        data_type: DataType,
        elements: Vec<Self>,
    ) -> Result<Tensor, OperatorError> {
        Tensor::from_f32s(shape, data_type, elements)
    }
}

impl Scalar for f64 {
    const LOWEST: Self = f64::NEG_INFINITY;
    const ONE: Self = 1.0;

    fn multiply_add(self, left: Self, right: Self) -> Self {
        self + left * right
    }

    fn scaled(self, factor: f32) -> Self {
        self * f64::from(factor)
    }

    fn read(tensor: &Tensor) -> Result<Cow<'_, [Self]>, OperatorError> {
        tensor.to_f64s().map(Cow::Owned)
    }

    fn write(
        shape: Vec<usize>,
        data_type: DataType,
        elements: Vec<Self>,
    ) -> Result<Tensor, OperatorError> {
        Tensor::from_f64s(shape, data_type, elements)
    }
}

macro_rules! integers {
    ($($rust:ty),*) => {$(
        impl Scalar for $rust {
            const LOWEST: Self = <$rust>::MIN;
            const ONE: Self = 1;

            fn multiply_add(self, left: Self, right: Self) -> Self {
                self.wrapping_add(left.wrapping_mul(right))
            }

            fn scaled(self, factor: f32) -> Self {
                if factor == 1.0 { self } else { (self as f64 * f64::from(factor)) as Self }
            }

            fn read(tensor: &Tensor) -> Result<Cow<'_, [Self]>, OperatorError> {
                tensor.elements().map(Cow::Borrowed)
            }

            fn write(
                shape: Vec<usize>,
                _data_type: DataType,
                elements: Vec<Self>,
            ) -> Result<Tensor, OperatorError> {
                Tensor::from_vec(shape, elements)
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

/// Evaluates `$body`, a `Result`, with `$scalar` naming the type that tensors of `$data_type` are computed in.
macro_rules! in_scalars {
    ($data_type:expr, $scalar:ident => $body:expr) => {{
        macro_rules! branch {
            ($rust:ty) => {{
                type $scalar = $rust;
                $body
            }};
        }
        match $data_type {
            $crate::DataType::F32 | $crate::DataType::F16 | $crate::DataType::BF16 => branch!(f32),
            $crate::DataType::F64 => branch!(f64),
            $crate::DataType::I8 => branch!(i8),
            $crate::DataType::I16 => branch!(i16),
            $crate::DataType::I32 => branch!(i32),
            $crate::DataType::I64 => branch!(i64),
            $crate::DataType::U8 => branch!(u8),
            $crate::DataType::U16 => branch!(u16),
            $crate::DataType::U32 => branch!(u32),
            $crate::DataType::U64 => branch!(u64),
            given => Err($crate::OperatorError::WrongType { expected: "a number".into(), given }),
        }
    }};
}
pub(crate) use in_scalars;

/// Refuses inputs of different element types.
pub(crate) fn same_type(tensors: &[&Tensor]) -> Result<DataType, OperatorError> {
    let first = tensors.first().ok_or(OperatorError::MissingInput(0))?.data_type();
    match tensors.iter().find(|tensor| tensor.data_type() != first) {
        None => Ok(first),
        Some(other) => {
            Err(OperatorError::WrongType { expected: first.to_string(), given: other.data_type() })
        }
    }
}
