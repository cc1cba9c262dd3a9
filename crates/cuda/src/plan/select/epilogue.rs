//! What products with constant weights have in common: their bias, and how rows of weights are spaced.

use std::sync::Arc;

use weft_device::DeviceError;

use crate::Storage;
use crate::kernels::stored::stored;
use crate::launch::DeviceWeights;
use crate::plan::site::Site;

/// From row to row of weights, so that every row starts at a multiple of 16 bytes.
pub(super) fn right_stride(columns: usize, storage: Storage) -> usize {
    columns.next_multiple_of(16 / storage.size_bytes())
}

/// The bias in input 2, a constant or absent, as `f32`, whatever the precision; `None` where it is absent.
pub(super) fn bias_weights(site: &Site<'_>) -> Result<Option<Arc<DeviceWeights>>, DeviceError> {
    let Some(bias) = site.f32_constant(2) else { return Ok(None) };
    let bytes = |numbers: &[f32]| stored(numbers.iter().copied(), Storage::F32);
    site.weights.get_or_make(bias, "bias".into(), bytes).map(Some)
}

/// The same in the type that activations are stored in, as libraries ask for it.
pub(super) fn stored_bias_weights(
    site: &Site<'_>,
) -> Result<Option<Arc<DeviceWeights>>, DeviceError> {
    let storage = site.precision.storage();
    let Some(bias) = site.f32_constant(2).filter(|_| storage != Storage::F32) else {
        return bias_weights(site);
    };
    let bytes = |numbers: &[f32]| stored(numbers.iter().copied(), storage);
    site.weights.get_or_make(bias, format!("bias {storage:?}"), bytes).map(Some)
}
