//! Convolutions, pooling and resampling: operators with windows over spatial axes.

mod affine_grid;
mod average_pool;
mod conv;
mod conv_transpose;
pub(crate) mod convolve;
mod deform_conv;
mod global_pool;
mod grid_sample;
pub(crate) mod image;
mod lp_pool;
mod max_pool;
mod max_unpool;
mod point;
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
    Registration::standard("AffineGrid", affine_grid::build),
    Registration::standard("AveragePool", average_pool::build),
    Registration::standard("Conv", conv::build),
    Registration::standard("ConvTranspose", conv_transpose::build),
    Registration::standard("DeformConv", deform_conv::build),
    Registration::standard("GlobalAveragePool", global_pool::build),
    Registration::standard("GlobalLpPool", global_pool::build),
    Registration::standard("GlobalMaxPool", global_pool::build),
    Registration::standard("GridSample", grid_sample::build),
    Registration::standard("LpPool", lp_pool::build),
    Registration::standard("MaxPool", max_pool::build),
    Registration::standard("MaxUnpool", max_unpool::build),
    Registration::standard("Resize", resize::build),
    Registration::standard("Upsample", resize::build),
];
