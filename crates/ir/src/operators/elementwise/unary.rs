//! Functions of one element without parameters: one table for all of them.

use std::sync::Arc;

use super::error_function::erf;
use super::inference::like_first;
use super::number::Number;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, TensorData};
use crate::value::Value;

/// One function of every element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unary {
    /// Which function.
    pub function: UnaryFunction,
}

/// What the table needs of `f32` and `f64` beyond the standard library.
trait Real {
    fn error_function(self) -> Self;
}

impl Real for f32 {
    fn error_function(self) -> Self {
        erf(self.into()) as f32
    }
}

impl Real for f64 {
    fn error_function(self) -> Self {
        erf(self)
    }
}

macro_rules! functions {
    ($($(#[$doc:meta])* $function:ident: $x:ident => $value:expr;)*) => {
        /// A function of one element, named as ONNX names its operator.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum UnaryFunction {
            $($(#[$doc])* $function,)*
        }

        impl UnaryFunction {
            /// Every function.
            pub const ALL: &[UnaryFunction] = &[$(UnaryFunction::$function),*];

            /// The ONNX operator's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(UnaryFunction::$function => stringify!($function),)*
                }
            }
        }

        /// The function's value at `x`: for operators that have the function fused into them.
        pub fn evaluate_unary(function: UnaryFunction, x: f32) -> f32 {
            match function {
                $(UnaryFunction::$function => { let $x = x; $value })*
            }
        }

        // The match stands outside the loops, so that each is a plain loop over one function.
        fn map_f32(function: UnaryFunction, elements: &[f32]) -> Vec<f32> {
            match function {
                $(UnaryFunction::$function => elements.iter().map(|&$x| -> f32 { $value }).collect(),)*
            }
        }

        fn map_f64(function: UnaryFunction, elements: &[f64]) -> Vec<f64> {
            match function {
                $(UnaryFunction::$function => elements.iter().map(|&$x| -> f64 { $value }).collect(),)*
            }
        }
    };
}

functions! {
    Abs: x => x.abs();
    Acos: x => x.acos();
    Acosh: x => x.acosh();
    Asin: x => x.asin();
    Asinh: x => x.asinh();
    Atan: x => x.atan();
    Atanh: x => x.atanh();
    Ceil: x => x.ceil();
    Cos: x => x.cos();
    Cosh: x => x.cosh();
    Erf: x => x.error_function();
    Exp: x => x.exp();
    Floor: x => x.floor();
    /// `x * clamp(x / 6 + 1/2, 0, 1)`.
    HardSwish: x => x * (x / 6.0 + 0.5).clamp(0.0, 1.0);
    Log: x => x.ln();
    /// `x * tanh(softplus(x))`.
    Mish: x => x * (x.max(0.0) + (-x.abs()).exp().ln_1p()).tanh();
    Neg: x => -x;
    Reciprocal: x => 1.0 / x;
    /// Negative elements become zero; not-a-number stays.
    Relu: x => if x < 0.0 { 0.0 } else { x };
    /// Halves go to the even neighbour.
    Round: x => x.round_ties_even();
    Sigmoid: x => 1.0 / (1.0 + (-x).exp());
    Sign: x => Number::sign(x);
    Sin: x => x.sin();
    Sinh: x => x.sinh();
    /// `log(1 + exp(x))`, without overflow.
    Softplus: x => x.max(0.0) + (-x.abs()).exp().ln_1p();
    Softsign: x => x / (1.0 + x.abs());
    Sqrt: x => x.sqrt();
    Tan: x => x.tan();
    Tanh: x => x.tanh();
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let function = UnaryFunction::ALL
        .iter()
        .copied()
        .find(|function| function.name() == source.operator)
        .ok_or_else(|| OperatorError::Unsupported(source.operator.to_string()))?;
    Ok(Arc::new(Unary { function }))
}

impl Operator for Unary {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        Ok(vec![apply_unary(self.function, inputs.tensor(0)?)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![like_first(inputs)])
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(*self))
    }
}

/// The function of every element.
pub(crate) fn apply_unary(function: UnaryFunction, x: &Tensor) -> Result<Tensor, OperatorError> {
    macro_rules! integers {
        ($($variant:ident),*) => {
            match x.data() {
                TensorData::F64(elements) => {
                    return Tensor::from_vec(x.shape().to_vec(), map_f64(function, elements));
                }
                $(TensorData::$variant(elements) => TensorData::$variant(
                    map_integers(function, elements).ok_or_else(|| OperatorError::WrongType {
                        expected: "a float".into(),
                        given: x.data_type(),
                    })?.into()),)*
                _ => {
                    let elements = map_f32(function, &x.to_f32s()?);
                    return Tensor::from_f32s(x.shape().to_vec(), x.data_type(), elements);
                }
            }
        };
    }
    let data = integers!(I8, I16, I32, I64, U8, U16, U32, U64);
    Tensor::new(x.shape().to_vec(), data)
}

fn map_integers<T: Number>(function: UnaryFunction, elements: &[T]) -> Option<Vec<T>> {
    let elements = elements.iter();
    Some(match function {
        UnaryFunction::Abs => elements.map(|x| x.magnitude()).collect(),
        UnaryFunction::Neg => elements.map(|x| x.negate()).collect(),
        UnaryFunction::Sign => elements.map(|x| x.sign()).collect(),
        UnaryFunction::Relu => elements.map(|x| x.greatest(T::ZERO)).collect(),
        // Listed for integers up to opset 12.
        UnaryFunction::Erf => elements.map(|x| T::from_f64(erf(x.to_f64()))).collect(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::standard_operator;

    #[test]
    fn every_function_is_registered_under_its_name() {
        for &function in UnaryFunction::ALL {
            let built = standard_operator(function.name(), 25, &Attributes::new()).unwrap();
            assert_eq!(built.downcast::<Unary>(), Some(&Unary { function }));
        }
    }

    #[test]
    fn extremes_stay_finite_where_the_function_is() {
        let cases = [
            (UnaryFunction::Sigmoid, -200.0, 0.0),
            (UnaryFunction::Softplus, 200.0, 200.0),
            (UnaryFunction::Softplus, -200.0, 0.0),
            (UnaryFunction::Mish, 200.0, 200.0),
            (UnaryFunction::Round, 2.5, 2.0),
            (UnaryFunction::Round, -1.5, -2.0),
        ];
        for (function, x, expected) in cases {
            assert_eq!(evaluate_unary(function, x), expected, "{function:?}({x})");
        }
    }

    #[test]
    fn what_has_no_such_function_is_refused() {
        for x in [Tensor::scalar(true), Tensor::scalar(1i32), Tensor::scalar(String::new())] {
            assert!(apply_unary(UnaryFunction::Exp, &x).is_err());
        }
        let negative = Tensor::scalar(-3i8);
        let positive = apply_unary(UnaryFunction::Relu, &negative).unwrap();
        assert_eq!(positive.only::<i8>(), Ok(0));
    }
}
