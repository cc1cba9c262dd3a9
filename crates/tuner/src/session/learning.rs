//! When the cost model learns anew.

use crate::cost_model::{CostModel, TrainingRows};
use crate::search::Effort;

/// How many times must be new before the model learns again.
const LEAST_NEW: usize = 32;

/// The share of what the model knows that must be new.
const NEW_SHARE: f64 = 0.15;

/// Has the searches go by a model that learns from what they find, and from what was known before.
pub(super) struct Learning<'a> {
    experience: &'a TrainingRows,
    seed: u64,
    /// How many times the model has learned from, and how many there are now.
    learned: usize,
    measured: usize,
}

impl<'a> Learning<'a> {
    /// Learns from experience alone, where there is any.
    pub(super) fn begin(experience: &'a TrainingRows, seed: u64, effort: &mut Effort) -> Self {
        let mut learning = Self { experience, seed, learned: 0, measured: 0 };
        learning.learn(effort);
        learning
    }

    /// Notes one more time, and learns when there is enough that is new.
    pub(super) fn note(&mut self, effort: &mut Effort) {
        self.measured += 1;
        let new = self.measured - self.learned;
        if new >= LEAST_NEW.max((self.learned as f64 * NEW_SHARE) as usize) {
            self.learn(effort);
        }
    }

    fn learn(&mut self, effort: &mut Effort) {
        let mut rows = self.experience.clone();
        // Rows of another width, or more of them than a model takes, leave it with what it has.
        let _ = effort.add_rows(&mut rows);
        if let Some(model) = CostModel::fit(&rows, self.seed) {
            effort.learn(&model);
        }
        self.learned = self.measured;
    }
}
