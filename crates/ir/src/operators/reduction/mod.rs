//! Operators that combine the elements along axes.

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[];
