//! Convolutions, pooling and resampling: operators with windows over spatial axes.

mod conv;
pub(crate) mod convolve;
pub(crate) mod image;
mod taps;
mod window;

pub use conv::Conv;
pub use window::{AxisWindow, Padding, Window};

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[Registration::standard("Conv", conv::build)];
