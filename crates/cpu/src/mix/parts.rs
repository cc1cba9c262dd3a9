//! A model's batch in equal parts, each computed by itself in an arena of its own.

use std::ops::Range;

use weft_device::DeviceError;

use crate::plan::{ExecutionPlan, Memory, StepGroup};
use crate::{AlignedBuffer, AllocationError, Worker};

/// All parts of a batch. They have one plan, with the steps of the plan for the whole batch.
pub(super) struct Parts {
    plan: ExecutionPlan,
    groups: Vec<StepGroup>,
    arenas: Vec<AlignedBuffer>,
}

impl Parts {
    /// So many parts, which have this plan.
    pub(super) fn new(plan: ExecutionPlan, count: usize) -> Result<Self, AllocationError> {
        let arenas = (0..count).map(|_| AlignedBuffer::zeroed(plan.arena_elements()));
        let arenas = arenas.collect::<Result<_, _>>()?;
        Ok(Self { groups: plan.smallest_groups(), plan, arenas })
    }

    /// How its steps run together.
    pub(super) fn groups(&self) -> &[StepGroup] {
        &self.groups
    }

    /// Begins a run of all of them beside that of the whole batch.
    pub(super) fn begin<'run>(&'run mut self, whole: &Memory<'run>) -> RunningParts<'run> {
        let Self { plan, groups, arenas } = self;
        let count = arenas.len();
        let arenas = arenas.iter_mut().enumerate();
        let memories =
            arenas.map(|(number, arena)| plan.memory_of_part(whole, arena, (number, count)));
        RunningParts { plan, groups, memories: memories.collect() }
    }
}

/// Parts while they run.
pub(super) struct RunningParts<'run> {
    plan: &'run ExecutionPlan,
    groups: &'run [StepGroup],
    memories: Vec<Memory<'run>>,
}

impl RunningParts<'_> {
    /// Runs some steps of one part; all workers that take part make the same call. The first calls `after_step` after each step
    /// of the plan.
    pub(super) fn run(
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
    pub(super) fn put_together(
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
    pub(super) fn end(self, model: &str) -> Result<(), DeviceError> {
        let end = |memory| self.plan.other_outputs(model, memory).map(|_| ());
        self.memories.into_iter().try_for_each(end)
    }
}
