//! What is tuned: one operator, and what is known of it.

use std::sync::Arc;
use std::time::Duration;

use weft_device::TunableOperator;

/// One operator of the models that are tuned.
#[derive(Clone)]
pub struct Task {
    /// The operator.
    pub operator: Arc<dyn TunableOperator>,
    /// How often the models compute it, each model counted as often as it matters.
    pub occurrences: f64,
    /// What earlier sessions found out.
    pub known: Vec<Known>,
}

/// What an earlier session found out about a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its place in the operator's list.
    pub candidate: usize,
    /// What one run took; `None` where it must not be tried again.
    pub time: Option<Duration>,
}
