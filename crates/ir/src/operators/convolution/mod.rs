//! Convolutions, pooling and resampling: operators with windows over spatial axes.

mod average_pool;
mod conv;
mod conv_transpose;
pub(crate) mod convolve;
mod global_pool;
pub(crate) mod image;
mod lp_pool;
mod max_pool;
mod pooling;
mod resize;
mod resize_axis;
mod taps;
mod window;

pub use average_pool::AveragePool;
pub use conv::Conv;
pub use conv_transpose::ConvTranspose;
pub use global_pool::{GlobalPool, GlobalPoolKind};
pub use max_pool::MaxPool;
pub use pooling::Pooling;
pub use resize::{AspectRatio, Resize};
pub use resize_axis::{AxisResize, AxisSamples, Coordinates, Interpolation, Rounding};
pub use window::{AxisWindow, Padding, Window};

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("AveragePool", average_pool::build),
    Registration::standard("Conv", conv::build),
    Registration::standard("ConvTranspose", conv_transpose::build),
    Registration::standard("GlobalAveragePool", global_pool::build),
    Registration::standard("GlobalLpPool", global_pool::build),
    Registration::standard("GlobalMaxPool", global_pool::build),
    Registration::standard("LpPool", lp_pool::build),
    Registration::standard("MaxPool", max_pool::build),
    Registration::standard("Resize", resize::build),
    Registration::standard("Upsample", resize::build),
];
