//! Operators that move elements or change shapes without computing.

mod transpose;

pub use transpose::{Transpose, transpose};

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] =
    &[Registration::standard("Transpose", transpose::build)];
