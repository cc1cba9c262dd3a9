//! A model's batch in equal parts, each computed by itself in memory of its own.

use std::ops::Range;

use weft_device::DeviceError;
use weft_ir::{OperatorError, Value};

use crate::plan::{ExecutionPlan, Memory, StepGroup};
use crate::{AlignedBuffer, AllocationError, Worker};

/// All parts of a batch. They have one plan, with the steps of the plan for the whole batch.
pub(super) struct Parts {
    plan: ExecutionPlan,
    groups: Vec<StepGroup>,
    memories: Vec<PartMemory>,
}

struct PartMemory {
    arena: AlignedBuffer,
    inputs: Vec<Value>,
    outputs: Vec<Vec<f32>>,
}

impl Parts {
    /// So many parts, which have this plan.
    pub(super) fn new(plan: ExecutionPlan, count: usize) -> Result<Self, AllocationError> {
        let memory = |_| {
            let arena = AlignedBuffer::zeroed(plan.arena_elements())?;
            Ok(PartMemory { arena, inputs: Vec::new(), outputs: plan.fresh_outputs() })
        };
        let memories = (0..count).map(memory).collect::<Result<_, _>>()?;
        Ok(Self { groups: plan.smallest_groups(), plan, memories })
    }

    /// How its steps run together.
    pub(super) fn groups(&self) -> &[StepGroup] {
        &self.groups
    }

    /// Sets what the parts read, each its entries of what the whole batch reads.
    pub(super) fn write_inputs(&mut self, inputs: &[Value]) -> Result<(), OperatorError> {
        let count = self.memories.len();
        for (number, memory) in self.memories.iter_mut().enumerate() {
            let part = |input: &Value| {
                let tensor = input.tensor().ok_or_else(|| {
                    OperatorError::Invalid("an input that is no tensor has no parts".into())
                })?;
                let each = tensor.shape().first().copied().unwrap_or(0) / count;
                tensor.entries(number * each..(number + 1) * each).map(Value::Tensor)
            };
            memory.inputs = inputs.iter().map(part).collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// Begins a run of all of them.
    pub(super) fn begin(&mut self) -> RunningParts<'_> {
        let Self { plan, groups, memories } = self;
        let memories = memories.iter_mut();
        let memories = memories
            .map(|PartMemory { arena, inputs, outputs }| plan.memory(arena, inputs, outputs))
            .collect();
        RunningParts { plan, groups, memories }
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
