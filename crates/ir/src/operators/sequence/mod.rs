//! Sequences and optionals.

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[];
