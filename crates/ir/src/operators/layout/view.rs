//! Views: operators whose output is the input's elements, in the same order, under another shape.

use super::{Flatten, Identity, Reshape, Squeeze, Unsqueeze};
use crate::operator::Operator;

/// True where the first output always has the elements of the first input, in the same order.
pub fn is_view(operator: &dyn Operator) -> bool {
    operator.downcast::<Reshape>().is_some()
        || operator.downcast::<Flatten>().is_some()
        || operator.downcast::<Squeeze>().is_some()
        || operator.downcast::<Unsqueeze>().is_some()
        || operator.downcast::<Identity>().is_some()
}
