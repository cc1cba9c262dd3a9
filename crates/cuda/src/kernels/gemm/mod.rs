//! Matrix products and convolutions on tensor cores: `gemm.cu`, and `stream_gemm.cu` where SMs have many tiles.

mod candidates;
mod cost;
mod epilogue;
mod parameters;
mod problem;
mod samples;
mod space;
mod split;
mod streamed;
mod streamed_cost;
mod text;
mod tile;
mod traits;

pub(crate) use candidates::{candidates, least_estimate, math_define, product_arguments};
pub(crate) use cost::MEMORY_BYTES_PER_CYCLE;
pub(crate) use epilogue::epilogue_activation;
pub(crate) use problem::{GemmProblem, Image, Left, Operands, Right};
pub(crate) use samples::{sample_problems, samples};
