//! A model of a mix: its plan, and memory of its own.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use weft_device::{DeviceError, KernelChoices, MIX_CHUNKS, MixMember};
use weft_ir::{OptimizedGraph, Value};

use super::draft::Part;
use crate::model::CpuModel;
use crate::plan::{
    ExecutionPlan, Memory, Parts, Planning, Run, RunningParts, StepGroup, build, build_part, let_go,
};
use crate::{AlignedBuffer, Isa, Pool, Worker};

/// About what putting parts together takes, in microseconds: the wait for the last of them, and the copies.
const JOINING_US: f64 = 5.0;
const JOINING_BYTES_PER_US: f64 = 4e3;

/// What the plans of all models of a mix are made with.
pub(super) struct Kernels {
    pub(super) isa: Isa,
    pub(super) workers: usize,
    pub(super) choices: Option<Arc<dyn KernelChoices>>,
}

impl Kernels {
    fn planning<'a>(&'a self, model: &'a CpuModel) -> Planning<'a> {
        let &Self { isa, workers, ref choices } = self;
        Planning { weights: &model.weights, isa, workers, choices: choices.as_deref() }
    }
}

/// One model at fixed shapes. Its plan is the same on any number of cores, so that steps go on from what others have left, and
/// results have the same bits.
pub(super) struct MixedModel {
    member: MixMember,
    plan: ExecutionPlan,
    /// By the numbers of parts in which its batch can be computed, each with the bits that it has in the whole.
    parted: HashMap<usize, Parts>,
    /// Shared out among the parts of a run, and large enough for those of every schedule.
    part_arena: AlignedBuffer,
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
    pub(super) fn new(member: &MixMember, kernels: &Kernels) -> Result<Self, DeviceError> {
        let MixMember { model, shapes } = member;
        let model = CpuModel::of(&**model)?;
        let graph = model.specialise(shapes)?;
        // Weights that rewrites have changed were copied; packing reads the others again, one after another.
        model.graph.values().iter().filter_map(|of| of.constant.as_ref()).for_each(let_go);
        let planning = kernels.planning(model);
        let parted = parted(model, &graph, shapes, &planning);
        let plan = build(graph, &planning);
        let groups = plan.smallest_groups();
        let steps = |groups: &[StepGroup]| -> Vec<Range<usize>> {
            groups.iter().map(|(steps, _)| steps.clone()).collect()
        };
        for parts in parted.values() {
            assert_eq!(steps(parts.groups()), steps(&groups), "parts have the steps of the whole");
        }
        let arena = AlignedBuffer::zeroed(plan.arena_elements()).map_err(|error| {
            DeviceError::Failed(error.to_string()).at(member.model.name(), None)
        })?;
        Ok(Self {
            member: member.clone(),
            groups,
            outputs: plan.fresh_outputs(),
            parted,
            part_arena: AlignedBuffer::empty(),
            arena,
            plan,
            inputs: None,
            others: None,
        })
    }

    pub(super) fn name(&self) -> &str {
        self.member.model.name()
    }

    pub(super) fn can_chunk(&self, count: usize) -> bool {
        count == 1 || self.parted.contains_key(&count)
    }

    /// Makes the memory for so many parts of the batch, unless there is as much.
    pub(super) fn prepare_parts(&mut self, count: usize) -> Result<(), DeviceError> {
        let failed = |why: String| DeviceError::Failed(why).at(self.member.model.name(), None);
        let none = || failed(format!("its batch is not computed in {count} chunks"));
        let elements = count * self.parted.get(&count).ok_or_else(none)?.arena_elements();
        if self.part_arena.len() < elements {
            // Nothing in it is needed from one run to the next; where there is no more, what was compiled before still runs.
            let made = AlignedBuffer::zeroed(elements);
            self.part_arena = made.map_err(|error| failed(error.to_string()))?;
        }
        Ok(())
    }

    /// For each step, how long it takes to put parts together before it; for ever where they [cannot](Self::check_joining) be.
    pub(super) fn joining_us(&self) -> Vec<f64> {
        let us = |step: usize| {
            let carried = self.plan.carried(self.groups[step].0.start);
            let bytes: usize = carried.map(|value| value.len() * size_of::<f32>()).sum();
            match self.check_joining(step) {
                Ok(()) => JOINING_US + bytes as f64 / JOINING_BYTES_PER_US,
                Err(_) => f64::INFINITY,
            }
        };
        (0..self.groups.len()).map(us).collect()
    }

    /// Refuses to put parts together where later steps read values that are not dense.
    pub(super) fn check_joining(&self, until: usize) -> Result<(), DeviceError> {
        match self.plan.can_join(until, &self.groups) {
            true => Ok(()),
            false => Err(self.failed(&format!("chunks are not put together before step {until}"))),
        }
    }

    /// What it takes for activations, of parts too, and for inputs and outputs, which stay from run to run.
    pub(super) fn memory_bytes(&self) -> usize {
        let outputs = self.outputs.iter().map(|output| size_of_val(output.as_slice()));
        let arenas = self.plan.arena_bytes() + size_of_val(&self.part_arena[..]);
        arenas + self.plan.input_bytes() + outputs.sum::<usize>()
    }

    pub(super) fn step_count(&self) -> usize {
        self.groups.len()
    }

    /// Which of its steps, as schedules know them, a step of the plan is part of.
    pub(super) fn group_of(&self, step: usize) -> usize {
        self.groups.partition_point(|(steps, _)| steps.end <= step)
    }

    pub(super) fn write_inputs(&mut self, inputs: &[Value]) -> Result<(), DeviceError> {
        self.plan.check_inputs(self.name(), inputs)?;
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
        let run = Run { model: self.name(), plan: &self.plan, inputs, after_step: |_| {} };
        run.on(&mut Default::default(), |body| pool.run(body))
    }

    /// Begins a run with the inputs that were written, some of it in so many parts that were prepared.
    pub(super) fn begin(&mut self, parts: usize) -> Result<RunningModel<'_>, DeviceError> {
        self.others = None;
        if self.inputs.is_none() {
            return Err(self.failed("its inputs were not written"));
        }
        let inputs = self.inputs.as_deref().unwrap_or_default();
        let memory = self.plan.memory(&mut self.arena, inputs, &mut self.outputs);
        let parts = self.parted.get(&parts).map(|parts| parts.begin(&memory, &mut self.part_arena));
        Ok(RunningModel {
            name: self.member.model.name(),
            plan: &self.plan,
            groups: &self.groups,
            parts,
            memory,
            others: &mut self.others,
        })
    }

    fn failed(&self, why: &str) -> DeviceError {
        DeviceError::Failed(why.to_string()).at(self.name(), None)
    }
}

/// A model while it runs.
pub(super) struct RunningModel<'run> {
    name: &'run str,
    plan: &'run ExecutionPlan,
    groups: &'run [StepGroup],
    memory: Memory<'run>,
    parts: Option<RunningParts<'run>>,
    others: &'run mut Option<Vec<Option<Value>>>,
}

impl RunningModel<'_> {
    /// Runs some of its steps, of a part of the batch or of all of it; all workers that take part make the same call. The first
    /// calls `after_step` after each step of the plan.
    pub(super) fn run(
        &self,
        part: Option<Part>,
        steps: Range<usize>,
        worker: &Worker<'_>,
        after_step: impl Fn(usize),
    ) {
        let Some(Part { number, is_last }) = part else {
            self.plan.run_groups(&self.groups[steps], worker, &self.memory, after_step);
            return;
        };
        let parts = self.parts.as_ref().expect("its schedule says how many there are");
        let end = steps.end.checked_sub(1).map_or(0, |last| self.groups[last].0.end);
        parts.run(number, steps, worker, after_step);
        if is_last {
            parts.put_together(number, end, (self.plan, &self.memory), worker);
        }
    }

    /// Runs all of them.
    pub(super) fn run_all(&self, worker: &Worker<'_>) {
        self.run(None, 0..self.groups.len(), worker, |_| {});
    }

    /// Ends the run: its outputs can be read unless it failed.
    pub(super) fn end(self) -> Result<(), DeviceError> {
        let others = self.plan.other_outputs(self.name, self.memory);
        self.parts.map_or(Ok(()), |parts| parts.end(self.name))?;
        *self.others = Some(others?);
        Ok(())
    }
}

/// The parts of a batch that the workers, or some of them, may each compute one of.
fn parted(
    model: &CpuModel,
    whole: &OptimizedGraph,
    shapes: &[Vec<usize>],
    planning: &Planning<'_>,
) -> HashMap<usize, Parts> {
    let counts = MIX_CHUNKS.into_iter().filter(|&count| count <= planning.workers);
    let planned = counts.filter_map(|count| {
        let part = model.part(whole, shapes, count)?;
        Some((count, Parts::new(build_part(part, whole, planning), count)))
    });
    planned.collect()
}

#[cfg(test)]
mod tests {
    use weft_device::Device;
    use weft_zoo::{ZooOptions, entry, sample_inputs};

    use super::*;
    use crate::CpuDevice;

    #[test]
    fn numbers_of_parts_share_one_arena() {
        let device = CpuDevice::new().unwrap();
        let options = ZooOptions::default();
        let inputs = sample_inputs(entry("tiny_resnet").unwrap(), &options, 48, 1).unwrap();
        let shapes = inputs.iter().map(|input| input.shape().to_vec()).collect();
        let graph = weft_zoo::build("tiny_resnet", &options).unwrap();
        let member = MixMember { model: device.load("tiny_resnet", &graph).unwrap(), shapes };
        let kernels = Kernels { isa: device.isa(), workers: 8, choices: None };
        let mut mixed = MixedModel::new(&member, &kernels).unwrap();
        let counts: Vec<usize> = (2..=8).filter(|&count| mixed.can_chunk(count)).collect();
        assert_eq!(counts, MIX_CHUNKS);
        let without_bytes = mixed.memory_bytes();
        let mut most_bytes = 0;
        for count in [4, 2, 8, 4] {
            mixed.prepare_parts(count).unwrap();
            let own_bytes = count * mixed.parted[&count].arena_elements() * size_of::<f32>();
            most_bytes = most_bytes.max(own_bytes);
            assert!(own_bytes > 0);
            assert_eq!(mixed.memory_bytes() - without_bytes, most_bytes, "{count}");
        }
        assert!(mixed.prepare_parts(3).is_err());
    }
}
