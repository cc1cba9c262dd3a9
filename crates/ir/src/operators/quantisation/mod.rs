//! Operators on quantised numbers, and the way there and back.

mod conv;
mod dynamic;
mod granularity;
mod linear;
mod mat_mul;
mod number;
mod zero_point;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("ConvInteger", conv::build_integer),
    Registration::standard("DequantizeLinear", linear::build_dequantise),
    Registration::standard("DynamicQuantizeLinear", dynamic::build),
    Registration::standard("MatMulInteger", mat_mul::build_integer),
    Registration::standard("QLinearConv", conv::build_quantised),
    Registration::standard("QLinearMatMul", mat_mul::build_quantised),
    Registration::standard("QuantizeLinear", linear::build_quantise),
];
