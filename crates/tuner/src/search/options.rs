//! How a search proceeds, and when it ends.

use thiserror::Error;

/// How a search chooses what to try next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Descendants of the fastest so far, ranked by what a cost model has learned.
    #[default]
    Learned,
    /// Any that was not tried, each as likely: what others are compared with.
    Random,
    /// All of them, in their order.
    Exhaustive,
}

/// What bounds a search and makes it repeatable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchOptions {
    /// How it chooses.
    pub strategy: Strategy,
    /// Where its random numbers begin: the same outcomes in the same order give the same proposals.
    pub seed: u64,
    /// How many candidates it gives out at most. An exhaustive search gives out all of them.
    pub max_trials: usize,
    /// After how many trials without a gain a learned search ends.
    pub patience: usize,
    /// The share of the best time that is worth going on for.
    pub worthwhile_gain: f64,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            strategy: Strategy::Learned,
            seed: 0,
            max_trials: 64,
            patience: 32,
            worthwhile_gain: 0.01,
        }
    }
}

/// How many candidates an exhaustive search takes on.
pub const MAX_EXHAUSTIVE: usize = 4096;

/// Why there can be no search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SearchError {
    /// Nothing to choose from.
    #[error("the operator has no candidates")]
    NoCandidates,
    /// Candidates of different spaces.
    #[error("candidate {candidate} has other numbers of parameters or features than the first")]
    Uneven {
        /// The first that differs.
        candidate: usize,
    },
    /// Trying all of them is out of the question.
    #[error("{candidates} candidates are too many to try them all (the limit is {MAX_EXHAUSTIVE})")]
    TooMany {
        /// How many there are.
        candidates: usize,
    },
}
