//! Operators that compute each output element from the input elements at the same place.

mod binary;
mod bit_cast;
pub(crate) mod cast;
mod clip;
mod convert;
mod dropout;
mod error_function;
mod float_class;
pub(crate) mod inference;
mod not;
pub(crate) mod number;
mod parametrised;
mod prelu;
mod select;
mod shrink;
mod unary;
mod variadic;
pub(crate) mod zip;

pub use binary::{Binary, BinaryFunction, apply_binary};
pub use bit_cast::BitCast;
pub use cast::Cast;
pub use clip::{BoundInput, Clip};
pub use convert::convert;
pub use dropout::Dropout;
pub use error_function::erf;
pub use float_class::{IsInf, IsNaN};
pub use not::{BitwiseNot, Not};
pub use parametrised::{Celu, Elu, Gelu, HardSigmoid, LeakyRelu, Selu, Swish, ThresholdedRelu};
pub use prelu::PRelu;
pub use select::Where;
pub use shrink::Shrink;
pub use unary::{Unary, UnaryFunction, evaluate_unary};
pub use variadic::{Variadic, VariadicFunction};

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("Abs", unary::build),
    Registration::standard("Acos", unary::build),
    Registration::standard("Acosh", unary::build),
    Registration::standard("Asin", unary::build),
    Registration::standard("Asinh", unary::build),
    Registration::standard("Atan", unary::build),
    Registration::standard("Atanh", unary::build),
    Registration::standard("Ceil", unary::build),
    Registration::standard("Cos", unary::build),
    Registration::standard("Cosh", unary::build),
    Registration::standard("Erf", unary::build),
    Registration::standard("Exp", unary::build),
    Registration::standard("Floor", unary::build),
    Registration::standard("HardSwish", unary::build),
    Registration::standard("Log", unary::build),
    Registration::standard("Mish", unary::build),
    Registration::standard("Neg", unary::build),
    Registration::standard("Reciprocal", unary::build),
    Registration::standard("Relu", unary::build),
    Registration::standard("Round", unary::build),
    Registration::standard("Sigmoid", unary::build),
    Registration::standard("Sign", unary::build),
    Registration::standard("Sin", unary::build),
    Registration::standard("Sinh", unary::build),
    Registration::standard("Softplus", unary::build),
    Registration::standard("Softsign", unary::build),
    Registration::standard("Sqrt", unary::build),
    Registration::standard("Tan", unary::build),
    Registration::standard("Tanh", unary::build),
    Registration::standard("Celu", parametrised::build_celu),
    Registration::standard("Elu", parametrised::build_elu),
    Registration::standard("Gelu", parametrised::build_gelu),
    Registration::standard("HardSigmoid", parametrised::build_hard_sigmoid),
    Registration::standard("LeakyRelu", parametrised::build_leaky_relu),
    Registration::standard("Selu", parametrised::build_selu),
    Registration::standard("Swish", parametrised::build_swish),
    Registration::standard("ThresholdedRelu", parametrised::build_thresholded_relu),
    Registration::standard("Clip", clip::build),
    Registration::standard("PRelu", prelu::build),
    Registration::standard("Add", binary::build),
    Registration::standard("And", binary::build),
    Registration::standard("BitShift", binary::build),
    Registration::standard("BitwiseAnd", binary::build),
    Registration::standard("BitwiseOr", binary::build),
    Registration::standard("BitwiseXor", binary::build),
    Registration::standard("Div", binary::build),
    Registration::standard("Equal", binary::build),
    Registration::standard("Greater", binary::build),
    Registration::standard("GreaterOrEqual", binary::build),
    Registration::standard("Less", binary::build),
    Registration::standard("LessOrEqual", binary::build),
    Registration::standard("Mod", binary::build),
    Registration::standard("Mul", binary::build),
    Registration::standard("Or", binary::build),
    Registration::standard("Pow", binary::build),
    Registration::standard("Sub", binary::build),
    Registration::standard("Xor", binary::build),
    Registration::standard("Max", variadic::build),
    Registration::standard("Mean", variadic::build),
    Registration::standard("Min", variadic::build),
    Registration::standard("Sum", variadic::build),
    Registration::standard("BitwiseNot", not::build_bitwise),
    Registration::standard("Not", not::build),
    Registration::standard("IsInf", float_class::build_is_inf),
    Registration::standard("IsNaN", float_class::build_is_nan),
    Registration::standard("BitCast", bit_cast::build),
    Registration::standard("Cast", cast::build),
    Registration::standard("CastLike", cast::build),
    Registration::standard("Dropout", dropout::build),
    Registration::standard("Shrink", shrink::build),
    Registration::standard("Where", select::build),
];
