//! Operators that normalise by mean, variance or norm.

mod batch_normalization;
mod channels;
mod layer_normalization;
mod trailing;

pub use batch_normalization::BatchNormalization;
pub use layer_normalization::LayerNormalization;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("BatchNormalization", batch_normalization::build),
    Registration::standard("LayerNormalization", layer_normalization::build),
];
