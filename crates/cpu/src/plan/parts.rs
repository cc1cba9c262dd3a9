//! A model's batch in equal parts, each computed by itself in an arena of its own.

use std::ops::Range;

use weft_device::DeviceError;

use super::{ExecutionPlan, Memory, StepGroup};
use crate::Worker;

/// The plan of all parts of a batch, with the steps of the plan for the whole batch.
pub(crate) struct Parts {
    plan: ExecutionPlan,
    groups: Vec<StepGroup>,
    count: usize,
}

impl Parts {
    /// So many parts, which have this plan.
    pub(crate) fn new(plan: ExecutionPlan, count: usize) -> Self {
        Self { groups: plan.smallest_groups(), plan, count }
    }

    /// How their steps run together.
    pub(crate) fn groups(&self) -> &[StepGroup] {
        &self.groups
    }

    /// What a run of one of them takes for activations, in elements.
    pub(crate) fn arena_elements(&self) -> usize {
        self.plan.arena_elements()
    }

    /// Begins a run of all of them beside that of the whole batch, in an arena that has room for each.
    pub(crate) fn begin<'run>(
        &'run self,
        whole: &Memory<'run>,
        arena: &'run mut [f32],
    ) -> RunningParts<'run> {
        let mut rest = arena;
        let memory = |number| {
            let (own, others) = std::mem::take(&mut rest).split_at_mut(self.arena_elements());
            rest = others;
            self.plan.memory_of_part(whole, own, (number, self.count))
        };
        let memories = (0..self.count).map(memory).collect();
        RunningParts { plan: &self.plan, groups: &self.groups, memories }
    }
}

/// Parts while they run.
pub(crate) struct RunningParts<'run> {
    plan: &'run ExecutionPlan,
    groups: &'run [StepGroup],
    memories: Vec<Memory<'run>>,
}

impl RunningParts<'_> {
    /// Runs some steps of one part; all workers that take part make the same call. The first calls `after_step` after each step
    /// of the plan.
    pub(crate) fn run(
        &self,
        number: usize,
        steps: Range<usize>,
        worker: &Worker<'_>,
        after_step: impl Fn(usize),
    ) {
        self.plan.run_groups(&self.groups[steps], worker, &self.memories[number], after_step);
    }

    /// Copies what one part has made before a step of the plan, and others read from it on, to where the whole batch has it. All
    /// workers that take part make the same call.
    pub(crate) fn put_together(
        &self,
        number: usize,
        step: usize,
        (plan, memory): (&ExecutionPlan, &Memory<'_>),
        worker: &Worker<'_>,
    ) {
        let own = &self.memories[number];
        let carried: Vec<_> = self.plan.carried(step).zip(plan.carried(step)).collect();
        worker.parallel(carried.len(), |index| {
            let (part, whole) = carried[index];
            // SAFETY: a part copies to its own entries, and steps of the whole batch begin when all parts have ended.
            unsafe { memory.write_part(whole, number, own.read(part, 0)) }
        });
    }

    /// Ends the run: why one of the parts failed, if one did.
    pub(crate) fn end(self, model: &str) -> Result<(), DeviceError> {
        let end = |memory| self.plan.other_outputs(model, memory).map(|_| ());
        self.memories.into_iter().try_for_each(end)
    }
}
