//! Operators on strings.

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[];
