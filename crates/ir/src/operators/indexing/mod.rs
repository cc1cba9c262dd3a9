//! Operators that pick, place, order or search elements by index.

mod gather;
mod index;

pub use gather::Gather;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[Registration::standard("Gather", gather::build)];
