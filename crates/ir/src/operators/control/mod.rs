//! Operators with bodies: branches, loops and maps.

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[];
