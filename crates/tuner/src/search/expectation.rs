//! What a cost model expects of an operator's candidates. It takes a while to find out for all of them, and can be found
//! out beside the search.

use std::sync::Arc;

use crate::cost_model::CostModel;

/// The features of all candidates of one operator.
#[derive(Clone, Debug)]
pub struct Features {
    width: usize,
    /// Candidate by candidate.
    values: Arc<[f32]>,
}

/// What is expected of each candidate.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// How many rows the model has learned from.
    pub(super) rows: usize,
    /// Logarithms of times relative to the operator's reference.
    pub(super) times: Vec<f32>,
}

impl Features {
    /// The features of candidates that have `width` each, one after the other.
    pub(super) fn new(width: usize, values: impl Iterator<Item = f32>) -> Self {
        Self { width, values: values.collect() }
    }

    /// Those of one candidate.
    pub(super) fn of(&self, candidate: usize) -> &[f32] {
        &self.values[candidate * self.width..][..self.width]
    }

    /// What a model expects; `None` where it knows no such candidates.
    pub fn expected_by(&self, model: &CostModel) -> Option<Expectation> {
        if model.width() != self.width || self.width == 0 {
            return None;
        }
        let times = self.values.chunks_exact(self.width).map(|features| model.predict(features));
        Some(Expectation { rows: model.rows(), times: times.collect() })
    }
}
