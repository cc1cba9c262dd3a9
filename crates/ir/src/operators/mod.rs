//! The operators: one file each, grouped by what they do, and the table that finds them by name.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::operator::{NodeSource, Operator, Registration};

pub mod attention;
pub mod classical;
pub mod control;
pub mod convolution;
mod dot;
pub mod elementwise;
pub mod fused;
#[cfg(test)]
mod hostile;
pub mod image;
pub mod indexing;
pub mod layout;
pub mod linear;
pub mod loss;
pub mod normalisation;
pub mod quantisation;
pub mod random;
pub mod recurrent;
pub mod reduction;
pub mod sequence;
pub mod signal;
pub mod text;

/// Every group's table.
const GROUPS: &[&[Registration]] = &[
    attention::OPERATORS,
    classical::OPERATORS,
    control::OPERATORS,
    convolution::OPERATORS,
    elementwise::OPERATORS,
    image::OPERATORS,
    indexing::OPERATORS,
    layout::OPERATORS,
    linear::OPERATORS,
    loss::OPERATORS,
    normalisation::OPERATORS,
    quantisation::OPERATORS,
    random::OPERATORS,
    recurrent::OPERATORS,
    reduction::OPERATORS,
    sequence::OPERATORS,
    signal::OPERATORS,
    text::OPERATORS,
];

/// Every operator that Weft claims.
pub fn registrations() -> impl Iterator<Item = &'static Registration> {
    GROUPS.iter().copied().flatten()
}

/// True where the operator is in the table.
pub fn is_supported(domain: &str, name: &str) -> bool {
    registrations().any(|entry| entry.domain == domain && entry.name == name)
}

/// Builds the operator of a node.
pub fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let entry = registrations()
        .find(|entry| entry.domain == source.domain && entry.name == source.operator)
        .ok_or_else(|| OperatorError::Unsupported(source.operator.to_string()))?;
    (entry.build)(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_operator_is_registered_twice() {
        let mut names: Vec<_> = registrations().map(|entry| (entry.domain, entry.name)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
