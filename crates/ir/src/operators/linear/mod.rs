//! Matrix products and what is built from them.

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[];
