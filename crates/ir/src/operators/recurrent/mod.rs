//! Recurrent layers.

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[];
