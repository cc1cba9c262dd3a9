//! Execution plans: the steps that run one model at fixed shapes, and where its values lie.

mod build;
mod chunks;
mod copy_step;
mod executable;
mod is_part;
mod kernel;
mod memory;
mod operators;
mod parts;
mod reference_step;
mod segment_uses;
mod select;
mod site;
mod slot;
mod steps;

pub(crate) use build::{Planning, build, build_part, let_go};
pub(crate) use executable::{CpuExecutable, Run};
pub(crate) use is_part::{LEAST_ENTRIES, is_part};
pub(crate) use memory::Memory;
pub(crate) use operators::fused_operators;
pub(crate) use parts::{Parts, RunningParts};
pub(crate) use slot::Operand;
pub(crate) use steps::StepGroup;

use std::ops::Range;

use kernel::Kernel;
use weft_ir::Fact;

/// Plans within all of these limits take about as long as it takes to wake a thread, and run on the caller's.
const SMALL_STEPS: usize = 8;
const SMALL_FLOPS: u64 = 50_000;
const SMALL_ARENA_BYTES: usize = 64 << 10;
const SMALL_VALUES: usize = 16 << 10;

/// One step: a kernel and its operands.
pub(crate) struct Step {
    kernel: Box<dyn Kernel>,
    inputs: Vec<Option<Operand>>,
    outputs: Vec<Option<Operand>>,
}

/// A value, but for outputs, that is there when the group of steps has ended that makes it.
struct PlacedValue {
    operand: Operand,
    /// From the step that makes it up to and including the last that reads it.
    needed: Range<usize>,
}

/// The steps of one model at fixed shapes, in order.
pub(crate) struct ExecutionPlan {
    steps: Vec<Step>,
    /// The steps in groups that run together, and how many chunks each group runs in.
    segments: Vec<StepGroup>,
    /// The graph's required inputs: their names and what they must be.
    inputs: Vec<(String, Fact)>,
    /// The graph's outputs.
    outputs: Vec<Operand>,
    /// In the order in which steps make them.
    values: Vec<PlacedValue>,
    heap_slots: usize,
    report: weft_device::ExecutionReport,
}

impl ExecutionPlan {
    /// Whether two models are computed by the same steps, whatever their weights.
    pub(crate) fn has_steps_of(&self, other: &Self) -> bool {
        let steps = |plan: &Self| -> Vec<(String, String, u64)> {
            let steps = plan.report.steps.iter();
            steps.map(|step| (step.operator.clone(), step.kernel.clone(), step.flops)).collect()
        };
        let outputs = |plan: &Self| -> Vec<Fact> {
            plan.outputs.iter().map(|output| output.fact.clone()).collect()
        };
        self.inputs == other.inputs
            && outputs(self) == outputs(other)
            && self.segments == other.segments
            && steps(self) == steps(other)
    }

    /// What a run takes for activations.
    pub(crate) fn arena_bytes(&self) -> usize {
        self.report.arena_bytes
    }

    /// The size of the inputs.
    pub(crate) fn input_bytes(&self) -> usize {
        self.inputs.iter().filter_map(|(_, fact)| fact.size_bytes()).sum()
    }

    /// Whether waking the workers would take longer than the work.
    fn is_small(&self) -> bool {
        let outputs = self.outputs.iter().map(|output| &output.fact);
        let facts = self.inputs.iter().map(|(_, fact)| fact).chain(outputs);
        let count = |fact: &Fact| Some(fact.shape()?.iter().product::<usize>());
        let values: Option<usize> = facts.map(count).sum();
        let has_few_values = values.is_some_and(|values| values <= SMALL_VALUES);
        has_few_values
            && self.steps.len() <= SMALL_STEPS
            && self.report.flops <= SMALL_FLOPS
            && self.report.arena_bytes <= SMALL_ARENA_BYTES
    }
}
