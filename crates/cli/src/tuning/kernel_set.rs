//! One candidate for each of some operators, whatever the partition.

use std::collections::HashMap;
use std::sync::Arc;

use weft_device::{KernelChoices, OperatorKey};
use weft_tuner::session::{Choice, Task};

/// What a session chose; none of it where nothing was tuned.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelSet(HashMap<OperatorKey, Arc<str>>);

impl KernelSet {
    /// The choices of a session over these tasks.
    pub(crate) fn of(tasks: &[Task], choices: &[Option<Choice>]) -> Self {
        let chosen = tasks.iter().zip(choices).filter_map(|(task, choice)| {
            let name = &task.operator.candidates()[choice.as_ref()?.candidate].name;
            Some((task.operator.key().clone(), name.as_str().into()))
        });
        Self(chosen.collect())
    }
}

impl KernelChoices for KernelSet {
    fn choice(&self, operator: &OperatorKey, _partition_size: usize) -> Option<Arc<str>> {
        self.0.get(operator).cloned()
    }
}
