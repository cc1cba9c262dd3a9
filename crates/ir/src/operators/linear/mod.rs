//! Matrix products and what is built from them.

mod det;
mod einsum;
mod einsum_equation;
mod gemm;
pub(crate) mod mat_mul;
pub(crate) mod product;
pub(crate) mod scalar;

pub use gemm::Gemm;
pub use mat_mul::MatMul;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("Det", det::build),
    Registration::standard("Einsum", einsum::build),
    Registration::standard("Gemm", gemm::build),
    Registration::standard("MatMul", mat_mul::build),
];
