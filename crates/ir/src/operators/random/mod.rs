//! Operators that draw random numbers.

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[];
