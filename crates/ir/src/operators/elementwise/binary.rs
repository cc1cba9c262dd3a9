//! Functions of two elements, broadcast against each other: one table for all of them.

use std::sync::Arc;

use super::inference::broadcast;
use super::number::{Number, narrowed, widened, with_numbers};
use super::zip::zip_broadcast;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Element, Tensor, TensorData};
use crate::value::Value;

/// One function of every pair of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binary {
    /// Which function.
    pub function: BinaryFunction,
}

/// A function of two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BinaryFunction {
    Add,
    Sub,
    Mul,
    /// Integers truncate; an integer divided by zero is zero.
    Div,
    /// The only one whose operands may differ in type; the result has the base's.
    Pow,
    /// The remainder with the divisor's sign.
    Mod,
    /// The remainder with the dividend's sign.
    Fmod,
    And,
    Or,
    Xor,
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    ShiftLeft,
    ShiftRight,
}

/// Function and name of its ONNX operator, which attributes may split in two.
const NAMES: &[(BinaryFunction, &str)] = &[
    (BinaryFunction::Add, "Add"),
    (BinaryFunction::Sub, "Sub"),
    (BinaryFunction::Mul, "Mul"),
    (BinaryFunction::Div, "Div"),
    (BinaryFunction::Pow, "Pow"),
    (BinaryFunction::Mod, "Mod"),
    (BinaryFunction::Fmod, "Mod"),
    (BinaryFunction::And, "And"),
    (BinaryFunction::Or, "Or"),
    (BinaryFunction::Xor, "Xor"),
    (BinaryFunction::Equal, "Equal"),
    (BinaryFunction::Greater, "Greater"),
    (BinaryFunction::GreaterOrEqual, "GreaterOrEqual"),
    (BinaryFunction::Less, "Less"),
    (BinaryFunction::LessOrEqual, "LessOrEqual"),
    (BinaryFunction::BitwiseAnd, "BitwiseAnd"),
    (BinaryFunction::BitwiseOr, "BitwiseOr"),
    (BinaryFunction::BitwiseXor, "BitwiseXor"),
    (BinaryFunction::ShiftLeft, "BitShift"),
    (BinaryFunction::ShiftRight, "BitShift"),
];

impl BinaryFunction {
    /// The ONNX operator's name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|row| row.0 == self).expect("every function has a name").1
    }

    /// True where the result is bool whatever the operands are.
    pub fn is_comparison(self) -> bool {
        use BinaryFunction::*;
        matches!(self, Equal | Greater | GreaterOrEqual | Less | LessOrEqual)
    }
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let function = match source.operator {
        "Mod" if source.attributes.flag_or("fmod", false)? => BinaryFunction::Fmod,
        "BitShift" => match source.attributes.string("direction")? {
            Some("LEFT") => BinaryFunction::ShiftLeft,
            Some("RIGHT") => BinaryFunction::ShiftRight,
            _ => {
                return Err(OperatorError::Attribute {
                    name: "direction".into(),
                    problem: "must be LEFT or RIGHT".into(),
                });
            }
        },
        name => {
            NAMES
                .iter()
                .find(|row| row.1 == name)
                .ok_or_else(|| OperatorError::Unsupported(name.to_string()))?
                .0
        }
    };
    Ok(Arc::new(Binary { function }))
}

impl Operator for Binary {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        Ok(vec![apply_binary(self.function, inputs.tensor(0)?, inputs.tensor(1)?)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let data_type = match self.function {
            function if function.is_comparison() => Some(DataType::Bool),
            BinaryFunction::Pow => inputs.data_type(0),
            _ => inputs.data_type(0).or(inputs.data_type(1)),
        };
        Ok(vec![broadcast(inputs, 2, data_type)?])
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(*self))
    }
}

/// The function of every pair of elements of two tensors that broadcast together.
pub fn apply_binary(
    function: BinaryFunction,
    left: &Tensor,
    right: &Tensor,
) -> Result<Tensor, OperatorError> {
    use BinaryFunction::*;
    if function == Pow {
        return power(left, right);
    }
    if left.data_type() != right.data_type() {
        return Err(OperatorError::WrongType {
            expected: left.data_type().to_string(),
            given: right.data_type(),
        });
    }
    match function {
        And | Or | Xor => logic(function, left, right),
        BitwiseAnd | BitwiseOr | BitwiseXor | ShiftLeft | ShiftRight => bits(function, left, right),
        _ if function.is_comparison() => comparison(function, left, right),
        _ => arithmetic(function, left, right),
    }
}

fn refused(function: BinaryFunction, given: DataType) -> OperatorError {
    OperatorError::WrongType { expected: format!("a type that {} takes", function.name()), given }
}

fn zipped<T: Element, R: Element>(
    left: &Tensor,
    right: &Tensor,
    function: impl Fn(T, T) -> R,
) -> Result<Tensor, OperatorError> {
    let left = (left.shape(), left.elements::<T>()?);
    let right = (right.shape(), right.elements::<T>()?);
    let (shape, elements) = zip_broadcast(left, right, function)?;
    Tensor::from_vec(shape, elements)
}

fn arithmetic(
    function: BinaryFunction,
    left: &Tensor,
    right: &Tensor,
) -> Result<Tensor, OperatorError> {
    fn run<T: Number>(
        function: BinaryFunction,
        left: &Tensor,
        right: &Tensor,
        _: &[T],
    ) -> Result<Tensor, OperatorError> {
        match function {
            BinaryFunction::Add => zipped(left, right, T::add),
            BinaryFunction::Sub => zipped(left, right, T::subtract),
            BinaryFunction::Mul => zipped(left, right, T::multiply),
            BinaryFunction::Div => zipped(left, right, T::divide),
            BinaryFunction::Mod => zipped(left, right, T::modulo),
            BinaryFunction::Fmod => zipped(left, right, T::remainder),
            _ => Err(refused(function, T::DATA_TYPE)),
        }
    }
    with_numbers!(left, elements => run(function, left, right, elements), halves => match halves {
        TensorData::F16(_) | TensorData::BF16(_) => {
            narrowed(arithmetic(function, &widened(left)?, &widened(right)?)?, left.data_type())
        }
        _ => Err(refused(function, left.data_type())),
    })
}

fn comparison(
    function: BinaryFunction,
    left: &Tensor,
    right: &Tensor,
) -> Result<Tensor, OperatorError> {
    fn run<T: Number>(
        function: BinaryFunction,
        left: &Tensor,
        right: &Tensor,
        _: &[T],
    ) -> Result<Tensor, OperatorError> {
        match function {
            BinaryFunction::Equal => zipped(left, right, |a: T, b: T| a == b),
            BinaryFunction::Greater => zipped(left, right, |a: T, b: T| a > b),
            BinaryFunction::GreaterOrEqual => zipped(left, right, |a: T, b: T| a >= b),
            BinaryFunction::Less => zipped(left, right, |a: T, b: T| a < b),
            BinaryFunction::LessOrEqual => zipped(left, right, |a: T, b: T| a <= b),
            _ => Err(refused(function, T::DATA_TYPE)),
        }
    }
    with_numbers!(left, elements => run(function, left, right, elements), other => match other {
        TensorData::F16(_) | TensorData::BF16(_) => {
            comparison(function, &widened(left)?, &widened(right)?)
        }
        TensorData::Bool(_) if function == BinaryFunction::Equal => {
            zipped(left, right, |a: bool, b: bool| a == b)
        }
        TensorData::String(_) if function == BinaryFunction::Equal => {
            let left = (left.shape(), left.elements::<String>()?);
            let right = (right.shape(), right.elements::<String>()?);
            let (left_texts, right_texts): (Vec<&str>, Vec<&str>) = (
                left.1.iter().map(String::as_str).collect(),
                right.1.iter().map(String::as_str).collect(),
            );
            let (shape, equal) =
                zip_broadcast((left.0, &left_texts), (right.0, &right_texts), |a, b| a == b)?;
            Tensor::from_vec(shape, equal)
        }
        _ => Err(refused(function, left.data_type())),
    })
}

fn logic(function: BinaryFunction, left: &Tensor, right: &Tensor) -> Result<Tensor, OperatorError> {
    match function {
        BinaryFunction::And => zipped(left, right, |a: bool, b: bool| a & b),
        BinaryFunction::Or => zipped(left, right, |a: bool, b: bool| a | b),
        _ => zipped(left, right, |a: bool, b: bool| a ^ b),
    }
}

fn bits(function: BinaryFunction, left: &Tensor, right: &Tensor) -> Result<Tensor, OperatorError> {
    macro_rules! integers {
        ($($variant:ident $integer:ident),*) => {
            match left.data() {
                $(TensorData::$variant(_) => {
                    type T = $integer;
                    // A shift by the width and more leaves nothing.
                    let shift = |by: T| u32::try_from(by).unwrap_or(u32::MAX);
                    match function {
                        BinaryFunction::BitwiseAnd => zipped(left, right, |a: T, b: T| a & b),
                        BinaryFunction::BitwiseOr => zipped(left, right, |a: T, b: T| a | b),
                        BinaryFunction::BitwiseXor => zipped(left, right, |a: T, b: T| a ^ b),
                        BinaryFunction::ShiftLeft => zipped(left, right, |a: T, b: T| {
                            a.checked_shl(shift(b)).unwrap_or(0)
                        }),
                        _ => zipped(left, right, |a: T, b: T| a.checked_shr(shift(b)).unwrap_or(0)),
                    }
                })*
                _ => Err(refused(function, left.data_type())),
            }
        };
    }
    integers!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
}

fn power(base: &Tensor, exponent: &Tensor) -> Result<Tensor, OperatorError> {
    fn run<T: Number>(
        base: &Tensor,
        bases: &[T],
        exponent: &Tensor,
    ) -> Result<Tensor, OperatorError> {
        let bases = (base.shape(), bases);
        let (shape, powers) = match exponent.data_type() {
            integer if integer.is_integer() => {
                let exponents = exponent.to_i64s()?;
                zip_broadcast(bases, (exponent.shape(), &exponents), T::power_integer)?
            }
            _ => {
                let exponents = exponent.to_f64s()?;
                // A square is exact and common, and the general function costs far more.
                match exponents[..] {
                    [2.0] => zip_broadcast(bases, (exponent.shape(), &exponents), |x, _| {
                        T::multiply(x, x)
                    })?,
                    _ => zip_broadcast(bases, (exponent.shape(), &exponents), T::power_float)?,
                }
            }
        };
        Tensor::from_vec(shape, powers)
    }
    with_numbers!(base, bases => run(base, bases, exponent), halves => match halves {
        TensorData::F16(_) | TensorData::BF16(_) => {
            narrowed(power(&widened(base)?, exponent)?, base.data_type())
        }
        _ => Err(refused(BinaryFunction::Pow, base.data_type())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_operands_never_panic() {
        use BinaryFunction::*;
        let (lowest, minus_one, zero) =
            (Tensor::scalar(i64::MIN), Tensor::scalar(-1i64), Tensor::scalar(0i64));
        for &(function, _) in NAMES {
            for right in [&minus_one, &zero, &lowest] {
                let result = apply_binary(function, &lowest, right);
                assert_eq!(result.is_err(), matches!(function, And | Or | Xor), "{function:?}");
            }
        }
        let wide = Tensor::scalar(64u64);
        assert_eq!(apply_binary(ShiftLeft, &wide, &wide).unwrap().only::<u64>(), Ok(0));
        assert!(apply_binary(Add, &lowest, &wide).is_err());
    }

    #[test]
    fn unknown_dimensions_stay_unknown() {
        let facts = [
            Fact::partial(Some(DataType::F32), Some(vec![None, Some(3), None])),
            Fact::partial(None, Some(vec![Some(1), Some(1), Some(5)])),
        ];
        let facts: Vec<Option<&Fact>> = facts.iter().map(Some).collect();
        let inferred = |function| {
            Binary { function }.infer(&InputFacts::new(&facts, 1)).unwrap()[0].to_string()
        };
        assert_eq!(inferred(BinaryFunction::Add), "float32[?,3,5]");
        assert_eq!(inferred(BinaryFunction::Less), "bool[?,3,5]");
    }
}
