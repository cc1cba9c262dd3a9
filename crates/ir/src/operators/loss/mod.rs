//! Training losses and optimiser steps.

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[];
