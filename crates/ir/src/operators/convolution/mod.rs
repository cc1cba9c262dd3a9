//! Convolutions, pooling and resampling: operators with windows over spatial axes.

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[];
