//! What is asked of one model.

use std::collections::BTreeMap;

use weft_scheduler::Span;
use weft_simulator::Load;

/// What is asked of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelLoad {
    /// As the server calls it.
    pub name: String,
    /// When requests are due.
    pub load: Load,
    /// Answers are due within this time.
    pub slo: Option<Span>,
    /// What the server is told about when an answer is worth nothing any more.
    pub timeout: Option<Span>,
    /// How large inputs are where the model leaves it open.
    pub dimensions: Dimensions,
}

/// Sizes of dimensions that a model leaves open, beyond the first of an input, which is the batch and 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimensions {
    /// Of inputs that are not named.
    pub default: usize,
    /// By the name of the input.
    pub by_input: BTreeMap<String, usize>,
}

impl Default for Dimensions {
    fn default() -> Self {
        Self { default: 128, by_input: BTreeMap::new() }
    }
}

impl Dimensions {
    /// The shape of an input as it is declared: below zero where it is open.
    pub(crate) fn close(&self, input: &str, declared: &[i64]) -> Vec<usize> {
        let open = self.by_input.get(input).copied().unwrap_or(self.default);
        let close = |(axis, &size): (usize, &i64)| match (usize::try_from(size), axis) {
            (Ok(size), _) => size,
            (Err(_), 0) => 1,
            (Err(_), _) => open,
        };
        declared.iter().enumerate().map(close).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_dimensions_are_one_for_the_batch_and_as_said_elsewhere() {
        let by_input = BTreeMap::from([("words".to_string(), 16)]);
        let dimensions = Dimensions { default: 9, by_input };
        assert_eq!(dimensions.close("words", &[-1, -1, 3]), [1, 16, 3]);
        assert_eq!(dimensions.close("image", &[-1, 3, -1, -1]), [1, 3, 9, 9]);
        assert_eq!(dimensions.close("image", &[4]), [4]);
        assert_eq!(dimensions.close("scalar", &[]), [0usize; 0]);
    }
}
