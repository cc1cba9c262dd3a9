//! Attention and the position encodings that go with it.

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[];
