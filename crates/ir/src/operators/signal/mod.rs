//! Fourier transforms and windows.

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[];
