//! Operators that compute each output element from the input elements at the same place.

mod relu;

pub use relu::Relu;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[Registration::standard("Relu", relu::build)];
