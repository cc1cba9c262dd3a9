//! One model of a mix: its memory, and plans for numbers of SMs and for parts of its batch.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use weft_device::{DeviceError, Executable, MixMember};

use crate::bound_work::BoundWork;
use crate::driver::{CudaError, GrowableBuffer, Stream, copy_on_device};
use crate::executable::CudaExecutable;
use crate::io_memory::IoMemory;
use crate::launch::DeviceWeights;
use crate::model::CudaModel;
use crate::partition::CudaPartition;
use crate::plan::place::Bases;
use crate::plan::steps::DeviceValue;
use crate::plan::{ExecutionPlan, PlacedValue};
use crate::preparation::{Preparation, ReadyStage};

/// What the widest loads of kernels, and the copy engine, ask of an address.
const PART_ALIGNMENT_BYTES: usize = 16;

/// A part of a model's batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Part {
    /// How many there are.
    pub(super) chunks: usize,
    /// Which one it is.
    pub(super) number: usize,
}

impl Part {
    /// The whole batch.
    pub(super) const WHOLE: Self = Self { chunks: 1, number: 0 };
}

/// One model.
pub(super) struct MixedModel {
    /// By numbers of SMs, for each part. They are dropped before the memory that they use.
    plans: HashMap<Part, HashMap<u32, BoundPlan>>,
    /// What parts that are not the whole batch keep values in.
    arenas: HashMap<Part, GrowableBuffer>,
    /// On all SMs; its memory is that of all plans of the whole batch.
    pub(super) executable: CudaExecutable,
    /// The values of the whole batch in the arena, and its inputs and outputs.
    values: Vec<PlacedValue>,
    given: Vec<DeviceValue>,
    member: MixMember,
}

/// A plan for a number of SMs, on memory that it shares with others for the same part.
struct BoundPlan {
    steps: Vec<Vec<BoundWork>>,
    values: Vec<PlacedValue>,
    /// Counters are the plan's own; inputs and outputs of it are not used.
    memory: IoMemory,
    _weights: Vec<Arc<DeviceWeights>>,
}

impl MixedModel {
    pub(super) fn new(whole: &CudaPartition, member: MixMember) -> Result<Self, DeviceError> {
        let MixMember { model, shapes } = &member;
        let model = CudaModel::of(&**model, &whole.gpu)?;
        let executable = whole.beside()?.prepare_model(model, shapes)?;
        let ExecutionPlan { values, inputs, output_buffers, .. } = whole.plan(model, shapes)?;
        let inputs = inputs.into_iter().filter_map(|input| input.uploaded);
        let given = inputs.chain(output_buffers).collect();
        let (plans, arenas) = (HashMap::new(), HashMap::new());
        Ok(Self { plans, arenas, executable, values, given, member })
    }

    /// Of the device's memory, besides weights.
    pub(super) fn memory_bytes(&self) -> usize {
        let plans = self.plans.values().flat_map(HashMap::values);
        let plans = plans.map(|plan| plan.memory.size_bytes());
        let arenas = self.arenas.values().map(GrowableBuffer::size_bytes);
        self.executable.own_bytes() + plans.chain(arenas).sum::<usize>()
    }

    pub(super) fn step_count(&self) -> usize {
        self.executable.report().steps.len()
    }

    /// Whether all inputs have the batch in front, which is a multiple of so many, and parts of inputs and outputs begin where
    /// kernels can read and write them.
    pub(super) fn can_chunk(&self, count: usize) -> bool {
        let batch =
            self.member.shapes.first().and_then(|shape| shape.first()).copied().unwrap_or(0);
        let has_batch = |shape: &Vec<usize>| shape.first() == Some(&batch);
        let is_aligned = |value: &DeviceValue| {
            (value.size_bytes() / count.max(1)).is_multiple_of(PART_ALIGNMENT_BYTES)
        };
        let is_possible =
            count > 0 && batch.is_multiple_of(count) && self.member.shapes.iter().all(has_batch);
        count == 1 || is_possible && self.given.iter().all(is_aligned)
    }

    /// The bytes of values that are made before a step and read from it on.
    pub(super) fn carried_bytes(&self, step: usize) -> usize {
        carried(&self.values, step).map(|placed| placed.value.size_bytes()).sum()
    }

    /// Makes the plans for parts of the batch on just so many SMs, unless they are there.
    pub(super) fn prepare(
        &mut self,
        chunks: usize,
        partition: &CudaPartition,
    ) -> Result<(), DeviceError> {
        for number in 0..chunks {
            let part = Part { chunks, number };
            let sm_count = partition.sm_count();
            if self.plans.get(&part).is_none_or(|plans| !plans.contains_key(&sm_count)) {
                let bound = self.bind(part, partition)?;
                self.plans.entry(part).or_default().insert(sm_count, bound);
            }
        }
        Ok(())
    }

    /// The same where there are none for any number of SMs.
    pub(super) fn prepare_first(
        &mut self,
        chunks: usize,
        partition: &CudaPartition,
    ) -> Result<(), DeviceError> {
        match self.plans.contains_key(&Part { chunks, number: 0 }) {
            true => Ok(()),
            false => self.prepare(chunks, partition),
        }
    }

    /// Steps for a part, as planned for the number of SMs that is nearest to this one, by their ratio.
    pub(super) fn steps(
        &self,
        part: Part,
        sm_count: u32,
        steps: Range<usize>,
    ) -> Result<&[Vec<BoundWork>], DeviceError> {
        let none = || DeviceError::Failed(format!("there are no steps {steps:?} of {part:?}"));
        let plans = self.plans.get(&part);
        if steps.is_empty() && plans.is_none() {
            return Ok(&[]);
        }
        let plans = plans.ok_or_else(none)?;
        let distance = |known: u32| (f64::from(known) / f64::from(sm_count)).ln().abs();
        let nearest = plans
            .iter()
            .min_by(|(a, _), (b, _)| distance(**a).total_cmp(&distance(**b)).then(a.cmp(b)));
        let found = nearest.and_then(|(_, plan)| plan.steps.get(steps.clone()));
        found.ok_or_else(none)
    }

    /// Adds copies of what a part has made before a step, and others read from it on, to where the whole batch has it.
    ///
    /// # Safety
    /// The model lives as long as the graph, and nothing else uses its memory while it runs.
    pub(super) unsafe fn put_together(
        &self,
        part: Part,
        step: usize,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        let (Some(plan), Some(arena)) =
            (self.plans.get(&part).and_then(|plans| plans.values().next()), self.arenas.get(&part))
        else {
            return Ok(());
        };
        let whole = self.executable.bases_for(0).map_err(|error| self.failed(error))?.arena;
        for placed in carried(&plan.values, step) {
            let target = carried(&self.values, step).find(|other| other.id == placed.id);
            let offset = target.and_then(|target| offset_in(&placed.value, &target.value, part));
            let (Some(target), Some(offset)) = (target, offset) else {
                let problem = format!("step {step} needs what is not put together of chunks");
                return Err(DeviceError::Failed(problem).at(self.member.model.name(), None));
            };
            let source = arena.address() + placed.offset_bytes as u64;
            let destination = whole + (target.offset_bytes + offset) as u64;
            // SAFETY: both ranges lie in the model's arenas; the caller vouches for who uses them.
            unsafe { copy_on_device(stream, destination, source, placed.value.size_bytes()) }
                .map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    pub(super) fn failed(&self, error: CudaError) -> DeviceError {
        DeviceError::from(error).at(self.member.model.name(), None)
    }

    fn bind(&mut self, part: Part, partition: &CudaPartition) -> Result<BoundPlan, DeviceError> {
        if !self.can_chunk(part.chunks) {
            let problem = format!("its batch is not computed in {} chunks", part.chunks);
            return Err(DeviceError::Failed(problem).at(self.member.model.name(), None));
        }
        let mut shapes = self.member.shapes.clone();
        shapes.iter_mut().filter(|_| part.chunks > 1).for_each(|shape| shape[0] /= part.chunks);
        let plan = partition.plan(CudaModel::of(&*self.member.model, &partition.gpu)?, &shapes)?;
        let gpu = &partition.gpu;
        let memory = IoMemory::new(&gpu.context, &plan, 1).map_err(|error| self.failed(error))?;
        let bases = Bases {
            counters: memory.bases(0).counters,
            ..self.bases(part, &plan, partition).map_err(|error| self.failed(error))?
        };
        let (weights, values) = (plan.weights(), plan.values);
        let lane = &partition.lane;
        let model = self.member.model.name();
        let preparation = Preparation { model, report: &plan.report, gpu, lane, bases: &bases };
        // SAFETY: the executable's memory and the arenas of parts outlive the plans of the model, and the counters and weights
        // are kept beside the steps.
        let stages = unsafe { preparation.stages(plan.stages) }?;
        let mut steps = Vec::new();
        for stage in stages {
            match stage {
                ReadyStage::Device(stage) => steps.extend(stage.steps),
                ReadyStage::Host(_) => {
                    let problem = "the host computes some of its steps".to_string();
                    return Err(DeviceError::Failed(problem).at(model, None));
                }
            }
        }
        if steps.len() != self.step_count() {
            let problem = "its plans differ in their steps from partition to partition".to_string();
            return Err(DeviceError::Failed(problem).at(model, None));
        }
        Ok(BoundPlan { steps, values, memory, _weights: weights })
    }

    /// Where a part's memory is: its part of the model's inputs and outputs, and an arena of its own where it is not the whole
    /// batch.
    fn bases(
        &mut self,
        part: Part,
        plan: &ExecutionPlan,
        partition: &CudaPartition,
    ) -> Result<Bases, CudaError> {
        if part == Part::WHOLE {
            return self.executable.bases_for(plan.report.arena_bytes);
        }
        let context = &partition.gpu.context;
        let arena = match self.arenas.entry(part) {
            Entry::Occupied(arena) => arena.into_mut(),
            Entry::Vacant(place) => {
                let size_bytes = context.memory_bytes() as usize;
                place.insert(GrowableBuffer::reserve(context, size_bytes)?)
            }
        };
        arena.grow_to(plan.report.arena_bytes)?;
        let mut bases = self.executable.bases_for(0)?;
        bases.arena = arena.address();
        let inputs = plan.inputs.iter().map(|input| input.uploaded.as_ref());
        for (address, value) in bases.inputs.iter_mut().zip(inputs) {
            *address += (value.map_or(0, DeviceValue::size_bytes) * part.number) as u64;
        }
        for (address, value) in bases.outputs.iter_mut().zip(&plan.output_buffers) {
            *address += (value.size_bytes() * part.number) as u64;
        }
        Ok(bases)
    }
}

/// Values that are made before a step and read from it on.
fn carried(values: &[PlacedValue], step: usize) -> impl Iterator<Item = &PlacedValue> {
    values.iter().filter(move |placed| placed.first_step < step && step <= placed.last_step)
}

/// Where a part's value lies in that of the whole batch; none where it is no part of it.
fn offset_in(value: &DeviceValue, whole: &DeviceValue, part: Part) -> Option<usize> {
    let is_alike = value.storage == whole.storage && value.shape.get(1..) == whole.shape.get(1..);
    match (value.shape.first(), whole.shape.first()) {
        (Some(own), Some(all)) if is_alike && own * part.chunks == *all => {
            Some(value.size_bytes() * part.number)
        }
        // What does not depend on the batch is the same for all.
        (own, all) if is_alike && own == all => Some(0),
        _ => None,
    }
}
