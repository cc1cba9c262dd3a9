//! A model of a mix: its plan, and memory of its own.

use std::ops::Range;

use weft_device::{DeviceError, check_inputs};
use weft_ir::Value;

use crate::plan::{ExecutionPlan, Memory, Run, StepGroup};
use crate::{AlignedBuffer, Pool, Worker};

/// One model at fixed shapes. Its plan is the same on any number of cores, so that steps go on from what others have left, and
/// results have the same bits.
pub(super) struct MixedModel {
    name: String,
    plan: ExecutionPlan,
    /// What schedules know as its steps.
    groups: Vec<StepGroup>,
    arena: AlignedBuffer,
    /// Absent until they are written.
    inputs: Option<Vec<Value>>,
    outputs: Vec<Vec<f32>>,
    /// Outputs of the last run that lie elsewhere; absent where it failed, or there was none.
    others: Option<Vec<Option<Value>>>,
}

impl MixedModel {
    pub(super) fn new(name: &str, plan: ExecutionPlan) -> Result<Self, DeviceError> {
        let arena = AlignedBuffer::zeroed(plan.arena_elements())
            .map_err(|error| DeviceError::Failed(error.to_string()).at(name, None))?;
        Ok(Self {
            name: name.to_string(),
            groups: plan.smallest_groups(),
            outputs: plan.fresh_outputs(),
            arena,
            plan,
            inputs: None,
            others: None,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn step_count(&self) -> usize {
        self.groups.len()
    }

    /// Which of its steps, as schedules know them, a step of the plan is part of.
    pub(super) fn group_of(&self, step: usize) -> usize {
        self.groups.partition_point(|(steps, _)| steps.end <= step)
    }

    pub(super) fn write_inputs(&mut self, inputs: &[Value]) -> Result<(), DeviceError> {
        let expected = self.plan.inputs().iter().map(|(name, fact)| (name.as_str(), fact));
        check_inputs(&self.name, expected, inputs)?;
        self.inputs = Some(inputs.to_vec());
        Ok(())
    }

    pub(super) fn read_outputs(&self) -> Result<Vec<Value>, DeviceError> {
        let others = self.others.clone().ok_or_else(|| self.failed("it has not run"))?;
        self.plan.results(others, self.outputs.clone())
    }

    /// Its outputs from other memory, as an executable would give them.
    pub(super) fn run_alone(
        &self,
        pool: &Pool,
        inputs: &[Value],
    ) -> Result<Vec<Value>, DeviceError> {
        let run = Run { model: &self.name, plan: &self.plan, inputs, after_step: |_| {} };
        run.on(&mut Default::default(), |body| pool.run(body))
    }

    /// Begins a run with the inputs that were written.
    pub(super) fn begin(&mut self) -> Result<RunningModel<'_>, DeviceError> {
        self.others = None;
        if self.inputs.is_none() {
            return Err(self.failed("its inputs were not written"));
        }
        let inputs = self.inputs.as_deref().unwrap_or_default();
        Ok(RunningModel {
            name: &self.name,
            plan: &self.plan,
            groups: &self.groups,
            memory: self.plan.memory(&mut self.arena, inputs, &mut self.outputs),
            others: &mut self.others,
        })
    }

    fn failed(&self, why: &str) -> DeviceError {
        DeviceError::Failed(why.to_string()).at(&self.name, None)
    }
}

/// A model while it runs.
pub(super) struct RunningModel<'run> {
    name: &'run str,
    plan: &'run ExecutionPlan,
    groups: &'run [StepGroup],
    memory: Memory<'run>,
    others: &'run mut Option<Vec<Option<Value>>>,
}

impl RunningModel<'_> {
    /// Runs some of its steps; all workers that take part make the same call. The first calls `after_step` after each step of
    /// the plan.
    pub(super) fn run(&self, steps: Range<usize>, worker: &Worker<'_>, after_step: impl Fn(usize)) {
        self.plan.run_groups(&self.groups[steps], worker, &self.memory, after_step);
    }

    /// Runs all of them.
    pub(super) fn run_all(&self, worker: &Worker<'_>) {
        self.run(0..self.groups.len(), worker, |_| {});
    }

    /// Ends the run: its outputs can be read unless it failed.
    pub(super) fn end(self) -> Result<(), DeviceError> {
        *self.others = Some(self.plan.other_outputs(self.name, self.memory)?);
        Ok(())
    }
}
