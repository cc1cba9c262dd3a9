//! How the steps of a plan run in memory that somebody else holds, all of them or some.

use std::ops::Range;

use weft_device::DeviceError;
use weft_ir::{Tensor, Value};

use super::ExecutionPlan;
use super::kernel::Call;
use super::memory::Memory;
use super::slot::{Operand, Slot};
use crate::Worker;

/// Steps that run together, and in how many chunks.
pub(crate) type StepGroup = (Range<usize>, usize);

impl ExecutionPlan {
    /// The steps in the smallest groups between which a run can change hands: those of several chunks stay together, since
    /// what lies between them is there one chunk at a time.
    pub(crate) fn smallest_groups(&self) -> Vec<StepGroup> {
        let mut groups = Vec::new();
        for (steps, chunks) in &self.segments {
            match chunks {
                1 => groups.extend(steps.clone().map(|step| (step..step + 1, 1))),
                _ => groups.push((steps.clone(), *chunks)),
            }
        }
        groups
    }

    /// What a run takes for activations, in elements.
    pub(crate) fn arena_elements(&self) -> usize {
        self.report.arena_bytes / size_of::<f32>()
    }

    /// Memory for the outputs; empty for those that lie elsewhere.
    pub(crate) fn fresh_outputs(&self) -> Vec<Vec<f32>> {
        let output = |output: &Operand| match output.slot {
            Slot::Output(_) => vec![0.0; output.len()],
            _ => Vec::new(),
        };
        self.outputs.iter().map(output).collect()
    }

    /// The memory of one run.
    pub(crate) fn memory<'run>(
        &self,
        arena: &'run mut [f32],
        inputs: &'run [Value],
        outputs: &'run mut [Vec<f32>],
    ) -> Memory<'run> {
        let outputs = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        Memory::new(arena, inputs, outputs, self.heap_slots)
    }

    /// Whether parts of the batch can be put together before a group of steps: all that later steps read is dense.
    pub(crate) fn can_join(&self, group: usize, groups: &[StepGroup]) -> bool {
        let step = groups.get(group).map(|(steps, _)| steps.start);
        step.into_iter().flat_map(|step| self.carried(step)).all(Operand::is_dense)
    }

    /// The memory of one of so many equal parts of the batch, which has this plan, beside that of the whole.
    pub(crate) fn memory_of_part<'run>(
        &self,
        whole: &Memory<'run>,
        arena: &'run mut [f32],
        part: (usize, usize),
    ) -> Memory<'run> {
        whole.of_part(arena, part, self.heap_slots)
    }

    /// Runs groups of steps; all workers that take part make the same call. The first calls `after_step` after each step.
    pub(crate) fn run_groups(
        &self,
        groups: &[StepGroup],
        worker: &Worker<'_>,
        memory: &Memory<'_>,
        after_step: impl Fn(usize),
    ) {
        for (steps, chunks) in groups {
            for (chunk, index) in
                (0..*chunks).flat_map(|chunk| steps.clone().map(move |index| (chunk, index)))
            {
                if memory.has_failed() {
                    return;
                }
                let step = &self.steps[index];
                let call = Call { memory, inputs: &step.inputs, outputs: &step.outputs, chunk };
                step.kernel.run(worker, &call);
                if worker.index() == 0 {
                    after_step(index);
                }
            }
        }
    }

    /// What is made before a step and needed from it on besides outputs, in the same order in all plans of one graph.
    pub(crate) fn carried(&self, step: usize) -> impl Iterator<Item = &Operand> {
        let is_carried = move |needed: &Range<usize>| needed.start < step && step <= needed.end;
        let carried = self.values.iter().filter(move |value| is_carried(&value.needed));
        carried.map(|value| &value.operand)
    }

    /// After a run: the outputs that lie elsewhere than in the memory for outputs, or why the run failed.
    pub(crate) fn other_outputs(
        &self,
        model: &str,
        memory: Memory<'_>,
    ) -> Result<Vec<Option<Value>>, DeviceError> {
        let other = |operand: &Operand| match operand.slot {
            Slot::Output(_) => Ok(None),
            _ if memory.has_failed() => Ok(None),
            _ => memory.value(operand).map(Some),
        };
        let others: Result<Vec<_>, _> = self.outputs.iter().map(other).collect();
        let others = others.map_err(|error| DeviceError::Failed(error.to_string()))?;
        match memory.into_failure() {
            Some(source) => {
                Err(DeviceError::Model { model: model.to_string(), source: Box::new(source) })
            }
            None => Ok(others),
        }
    }

    /// All outputs: those that lie elsewhere, and those in the memory for outputs.
    pub(crate) fn results(
        &self,
        others: Vec<Option<Value>>,
        outputs: Vec<Vec<f32>>,
    ) -> Result<Vec<Value>, DeviceError> {
        let results = others.into_iter().zip(outputs).zip(&self.outputs);
        let result = |((other, elements), operand): ((Option<Value>, Vec<f32>), &Operand)| {
            if let Some(value) = other {
                return Ok(value);
            }
            let tensor = Tensor::from_vec(operand.fact.shape().unwrap_or_default(), elements);
            tensor.map(Value::Tensor).map_err(|error| DeviceError::Failed(error.to_string()))
        };
        results.map(result).collect()
    }
}
