//! Operators that pick, place, order or search elements by index.

mod compress;
mod gather;
mod gather_elements;
mod gather_nd;
mod index;
mod non_zero;
mod one_hot;
mod order;
pub(super) mod scatter;
mod scatter_elements;
mod scatter_nd;
mod tensor_scatter;
mod top_k;
mod unique;

pub use gather::Gather;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("Compress", compress::build),
    Registration::standard("Gather", gather::build),
    Registration::standard("GatherElements", gather_elements::build),
    Registration::standard("GatherND", gather_nd::build),
    Registration::standard("NonZero", non_zero::build),
    Registration::standard("OneHot", one_hot::build),
    Registration::standard("Scatter", scatter_elements::build),
    Registration::standard("ScatterElements", scatter_elements::build),
    Registration::standard("ScatterND", scatter_nd::build),
    Registration::standard("TensorScatter", tensor_scatter::build),
    Registration::standard("TopK", top_k::build),
    Registration::standard("Unique", unique::build),
];
