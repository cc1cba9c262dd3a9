//! Operators that normalise by mean, variance or norm.

mod batch_normalization;
mod channels;
mod group_normalization;
mod instance_normalization;
mod layer_normalization;
mod local_response;
mod lp_normalization;
mod mean_variance_normalization;
mod rms_normalization;
mod statistics;
mod trailing;

pub use batch_normalization::BatchNormalization;
pub use instance_normalization::InstanceNormalization;
pub use layer_normalization::LayerNormalization;
pub use rms_normalization::RmsNormalization;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("BatchNormalization", batch_normalization::build),
    Registration::standard("GroupNormalization", group_normalization::build),
    Registration::standard("InstanceNormalization", instance_normalization::build),
    Registration::standard("LRN", local_response::build),
    Registration::standard("LayerNormalization", layer_normalization::build),
    Registration::standard("LpNormalization", lp_normalization::build),
    Registration::standard("MeanVarianceNormalization", mean_variance_normalization::build),
    Registration::standard("RMSNormalization", rms_normalization::build),
];
