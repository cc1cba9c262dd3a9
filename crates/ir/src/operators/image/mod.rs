//! Boxes, grids and regions of images.

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[];
