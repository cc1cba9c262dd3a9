//! Operators on quantised integers, and the way there and back.

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[];
