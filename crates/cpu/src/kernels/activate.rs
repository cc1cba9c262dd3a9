//! Owns the application of an activation to values that are already in memory.

use crate::Activation;
use crate::simd::Simd;

/// Replaces every value by its activation.
#[inline(always)]
pub(crate) fn activate<S: Simd>(simd: S, activation: Activation, values: &mut [f32]) {
    for chunk in values.chunks_mut(S::LANES) {
        let value = activation.apply(simd, simd.load_slice(chunk));
        simd.store_slice(chunk, value);
    }
}
