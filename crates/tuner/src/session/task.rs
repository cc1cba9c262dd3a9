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
    /// Candidates that were chosen for partitions of other sizes.
    pub chosen_elsewhere: Vec<usize>,
}

impl Task {
    /// An operator of which nothing is known.
    pub fn new(operator: Arc<dyn TunableOperator>, occurrences: f64) -> Self {
        Self { operator, occurrences, known: Vec::new(), chosen_elsewhere: Vec::new() }
    }

    /// Adds an operator of a model to the tasks; one that is among them already is computed so much more often.
    pub fn add(tasks: &mut Vec<Self>, operator: Arc<dyn TunableOperator>) {
        let occurrences = operator.occurrences() as f64;
        match tasks.iter_mut().find(|task| task.operator.key() == operator.key()) {
            Some(task) => task.occurrences += occurrences,
            None => tasks.push(Self::new(operator, occurrences)),
        }
    }
}

/// What an earlier session found out about a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its place in the operator's list.
    pub candidate: usize,
    /// What one run took; `None` where it must not be tried again.
    pub time: Option<Duration>,
}
