//! Operators that pick, place, order or search elements by index.

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[];
