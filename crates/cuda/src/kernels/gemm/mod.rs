//! Matrix products and convolutions on tensor cores: `gemm.cu`.

mod candidates;
mod cost;
mod parameters;
mod problem;
mod tile;

pub(crate) use candidates::{candidates, math_define, samples};
pub(crate) use problem::{GemmProblem, Image, Left, Operands, Right};
