//! Boxes and regions of images.

mod max_roi_pool;
mod non_max_suppression;
mod regions;
mod roi_align;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("MaxRoiPool", max_roi_pool::build),
    Registration::standard("NonMaxSuppression", non_max_suppression::build),
    Registration::standard("RoiAlign", roi_align::build),
];
