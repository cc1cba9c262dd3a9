//! The kernels: for each, its parameters, when it can be used, its candidates and how they are launched.

pub(crate) mod activation;
pub(crate) mod attention;
pub(crate) mod convert;
pub(crate) mod depthwise;
mod divider;
pub(crate) mod elementwise;
mod flat;
pub(crate) mod gemm;
pub(crate) mod joined;
pub(crate) mod pad;
pub(crate) mod pad_rows;
pub(crate) mod pooling;
pub(crate) mod reduce;
pub(crate) mod stored;
pub(crate) mod strided_copy;
pub(crate) mod transpose;
pub(crate) mod view;
mod widening;

use crate::launch::KernelSource;

/// Typical variants of every kernel.
const SAMPLES: &[fn() -> Vec<KernelSource>] = &[
    attention::samples,
    convert::samples,
    depthwise::samples,
    elementwise::samples,
    gemm::samples,
    joined::samples,
    pad::samples,
    pad_rows::samples,
    pooling::samples,
    reduce::samples,
    strided_copy::samples,
    transpose::samples,
];

/// Typical variants of every kernel, for checking that they compile where there is no GPU.
pub fn sample_sources() -> Vec<KernelSource> {
    SAMPLES.iter().flat_map(|samples| samples()).collect()
}
