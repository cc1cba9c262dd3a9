//! Arithmetic as the operators mean it, on every native number: integers wrap, floats follow IEEE 754.

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::tensor::{Element, Tensor};

/// A native integer or float.
pub(crate) trait Number: Element + Copy + PartialOrd {
    const ZERO: Self;
    const ONE: Self;
    /// What no number is below: the result of a maximum over nothing.
    const LOWEST: Self;
    /// What no number is above: the result of a minimum over nothing.
    const HIGHEST: Self;

    fn add(self, other: Self) -> Self;
    fn subtract(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    /// Integers truncate; an integer divided by zero is zero.
    fn divide(self, other: Self) -> Self;
    /// The remainder with the divisor's sign; zero for an integer divided by zero.
    fn modulo(self, other: Self) -> Self;
    /// The remainder with the dividend's sign; zero for an integer divided by zero.
    fn remainder(self, other: Self) -> Self;
    fn power_integer(self, exponent: i64) -> Self;
    fn power_float(self, exponent: f64) -> Self;
    fn negate(self) -> Self;
    fn magnitude(self) -> Self;
    fn sign(self) -> Self;
    fn to_f64(self) -> f64;
    /// Integers truncate and saturate.
    fn from_f64(value: f64) -> Self;

    /// The smaller; not-a-number where either is.
    fn least(self, other: Self) -> Self {
        // Written so that a not-a-number on either side comes through.
        if self < other || self.is_unordered() { self } else { other }
    }

    /// The larger; not-a-number where either is.
    fn greatest(self, other: Self) -> Self {
        if self > other || self.is_unordered() { self } else { other }
    }

    /// True for not-a-number.
    #[allow(clippy::eq_op)]
    fn is_unordered(self) -> bool {
        self != self
    }
}

macro_rules! integers {
    ($($integer:ident $negate:expr, $magnitude:expr, $sign:expr;)*) => {$(
        impl Number for $integer {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = $integer::MIN;
            const HIGHEST: Self = $integer::MAX;

            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn subtract(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn multiply(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn divide(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            fn modulo(self, other: Self) -> Self {
                let remainder = self.remainder(other);
                if remainder != 0 && (remainder < Self::ZERO) != (other < Self::ZERO) {
                    remainder.wrapping_add(other)
                } else {
                    remainder
                }
            }
            fn remainder(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }
            fn power_integer(self, exponent: i64) -> Self {
                let Ok(mut exponent) = u64::try_from(exponent) else {
                    // A reciprocal truncates to zero, save of one and minus one.
                    return match Self::ONE.divide(self) {
                        0 => 0,
                        unit => unit.power_integer(exponent & 1),
                    };
                };
                let (mut power, mut base) = (Self::ONE, self);
                while exponent > 0 {
                    if exponent & 1 == 1 {
                        power = Self::multiply(power, base);
                    }
                    base = Self::multiply(base, base);
                    exponent >>= 1;
                }
                power
            }
            fn power_float(self, exponent: f64) -> Self {
                Self::from_f64(self.to_f64().powf(exponent))
            }
            fn negate(self) -> Self {
                $negate(self)
            }
            fn magnitude(self) -> Self {
                $magnitude(self)
            }
            fn sign(self) -> Self {
                $sign(self)
            }
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn from_f64(value: f64) -> Self {
                value as $integer
            }
        }
    )*};
}

integers! {
    i8 i8::wrapping_neg, i8::wrapping_abs, i8::signum;
    i16 i16::wrapping_neg, i16::wrapping_abs, i16::signum;
    i32 i32::wrapping_neg, i32::wrapping_abs, i32::signum;
    i64 i64::wrapping_neg, i64::wrapping_abs, i64::signum;
    u8 u8::wrapping_neg, std::convert::identity, |x: u8| x.min(1);
    u16 u16::wrapping_neg, std::convert::identity, |x: u16| x.min(1);
    u32 u32::wrapping_neg, std::convert::identity, |x: u32| x.min(1);
    u64 u64::wrapping_neg, std::convert::identity, |x: u64| x.min(1);
}

macro_rules! floats {
    ($($float:ident)*) => {$(
        impl Number for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = $float::NEG_INFINITY;
            const HIGHEST: Self = $float::INFINITY;

            fn add(self, other: Self) -> Self {
                self + other
            }
            fn subtract(self, other: Self) -> Self {
                self - other
            }
            fn multiply(self, other: Self) -> Self {
                self * other
            }
            fn divide(self, other: Self) -> Self {
                self / other
            }
            fn modulo(self, other: Self) -> Self {
                let remainder = self % other;
                if remainder != 0.0 && (remainder < 0.0) != (other < 0.0) {
                    remainder + other
                } else {
                    remainder
                }
            }
            fn remainder(self, other: Self) -> Self {
                self % other
            }
            fn power_integer(self, exponent: i64) -> Self {
                self.power_float(exponent as f64)
            }
            fn power_float(self, exponent: f64) -> Self {
                self.powf(exponent as $float)
            }
            fn negate(self) -> Self {
                -self
            }
            fn magnitude(self) -> Self {
                self.abs()
            }
            fn sign(self) -> Self {
                if self > 0.0 {
                    1.0
                } else if self < 0.0 {
                    -1.0
                } else {
                    self
                }
            }
            fn to_f64(self) -> f64 {
                self.into()
            }
            fn from_f64(value: f64) -> Self {
                value as $float
            }
        }
    )*};
}
floats! { f32 f64 }

/// A tensor of 16-bit floats as one of `f32`, in which they are computed with.
pub(crate) fn widened(x: &Tensor) -> Result<Tensor, OperatorError> {
    Tensor::from_vec(x.shape().to_vec(), x.to_f32s()?.into_owned())
}

/// The way back from [`widened`].
pub(crate) fn narrowed(x: Tensor, data_type: DataType) -> Result<Tensor, OperatorError> {
    Tensor::from_f32s(x.shape().to_vec(), data_type, x.into_elements()?)
}

/// Runs `$body` with `$elements` bound to the tensor's elements, for every native number.
/// The data of tensors of other types goes to `$otherwise` as `$other`.
macro_rules! with_numbers {
    ($tensor:expr, $elements:ident => $body:expr, $other:ident => $otherwise:expr) => {
        match $tensor.data() {
            $crate::TensorData::F32($elements) => $body,
            $crate::TensorData::F64($elements) => $body,
            $crate::TensorData::I8($elements) => $body,
            $crate::TensorData::I16($elements) => $body,
            $crate::TensorData::I32($elements) => $body,
            $crate::TensorData::I64($elements) => $body,
            $crate::TensorData::U8($elements) => $body,
            $crate::TensorData::U16($elements) => $body,
            $crate::TensorData::U32($elements) => $body,
            $crate::TensorData::U64($elements) => $body,
            $other => $otherwise,
        }
    };
}
pub(crate) use with_numbers;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_never_trap() {
        assert_eq!(i32::MIN.divide(-1), i32::MIN);
        assert_eq!(7i64.divide(0), 0);
        assert_eq!((-7i32).divide(2), -3);
        assert_eq!(i8::MIN.remainder(-1), 0);
        assert_eq!((7u8.modulo(0), i8::MIN.magnitude(), 3u8.negate()), (0, i8::MIN, 253));
    }

    #[test]
    fn remainders_differ_in_sign() {
        for (dividend, divisor, modulo, remainder) in
            [(-7, 3, 2, -1), (7, -3, -2, 1), (-7, -3, -1, -1), (6, -3, 0, 0)]
        {
            assert_eq!(dividend.modulo(divisor), modulo);
            assert_eq!(dividend.remainder(divisor), remainder);
            assert_eq!(f64::from(dividend).modulo(f64::from(divisor)), f64::from(modulo));
        }
    }

    #[test]
    fn integer_powers_wrap_and_truncate() {
        for (base, exponent, power) in
            [(3, 4, 81), (-2, 3, -8), (2, -1, 0), (-1, -3, -1), (1, i64::MIN, 1), (0, -1, 0)]
        {
            assert_eq!(base.power_integer(exponent), power, "{base}^{exponent}");
        }
        assert_eq!(2i32.power_integer(32), 0);
    }

    #[test]
    fn not_a_number_comes_through() {
        assert!(f32::NAN.least(1.0).is_nan() && 1f32.least(f32::NAN).is_nan());
        assert!(f32::NAN.greatest(1.0).is_nan() && 1f32.greatest(f32::NAN).is_nan());
    }
}
