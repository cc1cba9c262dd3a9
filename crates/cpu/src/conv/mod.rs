//! Owns two-dimensional convolution of images with channels last: the algorithms, and the choice among them.

mod algorithm;
mod candidate;
mod depthwise;
mod implicit_gemm;
mod packed;
mod problem;
mod reference;
#[cfg(test)]
mod testing;
mod winograd;

pub use algorithm::ConvAlgorithm;
pub use candidate::ConvCandidate;
pub use depthwise::{DepthwiseConv, DepthwiseParameters, DepthwiseWeights};
pub use implicit_gemm::{ImplicitGemmConv, ImplicitGemmWeights};
pub use packed::{ConvWeights, PackedConv};
pub use problem::{ConvError, ConvProblem};
pub(crate) use reference::Reference;
pub use winograd::{WinogradConv, WinogradParameters, WinogradTile, WinogradWeights};
