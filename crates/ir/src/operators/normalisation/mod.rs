//! Operators that normalise by mean, variance or norm.

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[];
