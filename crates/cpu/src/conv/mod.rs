//! Owns two-dimensional convolution of images with channels last: the algorithms, and the choice among them.

mod algorithm;
mod depthwise;
mod implicit_gemm;
mod packed;
mod problem;
#[cfg(test)]
mod reference;
mod winograd;

pub use algorithm::ConvAlgorithm;
pub use depthwise::{DepthwiseConv, DepthwiseWeights};
pub use implicit_gemm::{ImplicitGemmConv, ImplicitGemmWeights};
pub use packed::{ConvWeights, PackedConv};
pub use problem::{ConvError, ConvProblem};
pub use winograd::{WinogradConv, WinogradTile, WinogradWeights};
