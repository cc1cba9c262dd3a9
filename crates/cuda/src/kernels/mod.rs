//! The kernels: for each, its parameters, when it can be used, its candidates and how they are launched.

pub(crate) mod activation;
pub(crate) mod convert;
mod divider;
mod flat;
pub(crate) mod joined;
pub(crate) mod pad;
pub(crate) mod strided_copy;
pub(crate) mod transpose;
pub(crate) mod view;
mod widening;

use crate::launch::KernelSource;

/// Typical variants of every kernel.
const SAMPLES: &[fn() -> Vec<KernelSource>] =
    &[convert::samples, joined::samples, pad::samples, strided_copy::samples, transpose::samples];

/// Typical variants of every kernel, for checking that they compile where there is no GPU.
pub fn sample_sources() -> Vec<KernelSource> {
    SAMPLES.iter().flat_map(|samples| samples()).collect()
}
