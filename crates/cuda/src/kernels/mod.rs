//! The kernels: for each, its parameters, when it can be used, its candidates and how they are launched.

pub(crate) mod activation;
pub(crate) mod attention;
pub(crate) mod convert;
pub(crate) mod depthwise;
pub(crate) mod difference;
pub(crate) mod direct_conv;
mod divider;
pub(crate) mod elementwise;
pub(crate) mod extreme;
mod flat;
pub(crate) mod gather;
pub(crate) mod gemm;
mod interleave;
pub(crate) mod joined;
pub(crate) mod naive_product;
pub(crate) mod normalise;
pub(crate) mod normalise_columns;
pub(crate) mod note_sm;
pub(crate) mod pad;
pub(crate) mod pad_rows;
pub(crate) mod pooling;
pub(crate) mod random;
pub(crate) mod recurrent;
pub(crate) mod reduce;
pub(crate) mod resize;
mod rows;
pub(crate) mod sgemm;
mod sgemv;
pub(crate) mod softmax;
pub(crate) mod stem_conv;
pub(crate) mod stored;
pub(crate) mod strided_copy;
pub(crate) mod transpose;
pub(crate) mod view;
mod widening;
pub(crate) mod window_conv;

use crate::launch::KernelSource;

/// Typical variants of every kernel.
const SAMPLES: &[fn() -> Vec<KernelSource>] = &[
    attention::samples,
    convert::samples,
    depthwise::samples,
    difference::samples,
    direct_conv::samples,
    elementwise::samples,
    extreme::samples,
    gather::samples,
    gemm::samples,
    interleave::samples,
    joined::samples,
    naive_product::samples,
    normalise::samples,
    normalise_columns::samples,
    note_sm::samples,
    pad::samples,
    pad_rows::samples,
    pooling::samples,
    random::samples,
    recurrent::samples,
    reduce::samples,
    resize::samples,
    sgemm::samples,
    sgemv::samples,
    softmax::samples,
    stem_conv::samples,
    strided_copy::samples,
    transpose::samples,
    window_conv::samples,
];

/// Typical variants of every kernel, for checking that they compile where there is no GPU.
pub fn sample_sources() -> Vec<KernelSource> {
    SAMPLES.iter().flat_map(|samples| samples()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kernels of no model, which never share a launch.
    const APART: [&str; 3] = ["sgemm.cu", "sgemm_panels.cu", "sgemv.cu"];

    #[test]
    fn kernels_ask_for_their_place_by_the_names_of_the_prelude() {
        // In a launch that several kernels share, CUDA's own variables are those of all of them.
        let is_shared = |source: &KernelSource| !APART.contains(&source.template);
        for source in sample_sources().into_iter().filter(is_shared) {
            for variable in ["blockIdx", "gridDim", "blockDim"] {
                let uses =
                    [source.text, &source.generated].iter().any(|text| text.contains(variable));
                assert!(!uses, "{} reads {variable}", source.template);
            }
        }
    }
}
