//! Execution plans: the steps that run one model at fixed shapes, and where its values lie.

mod build;
mod chunks;
mod copy_step;
mod executable;
mod kernel;
mod memory;
mod reference_step;
mod segment_uses;
mod select;
mod site;
mod slot;

pub(crate) use build::{build, let_go};
pub(crate) use executable::CpuExecutable;

use std::ops::Range;

use kernel::Kernel;
use slot::Operand;
use weft_ir::Fact;

/// One step: a kernel and its operands.
pub(crate) struct Step {
    kernel: Box<dyn Kernel>,
    inputs: Vec<Option<Operand>>,
    outputs: Vec<Option<Operand>>,
}

/// The steps of one model at fixed shapes, in order.
pub(crate) struct ExecutionPlan {
    steps: Vec<Step>,
    /// The steps in groups that run together, and how many chunks each group runs in.
    segments: Vec<(Range<usize>, usize)>,
    /// The graph's required inputs: their names and what they must be.
    inputs: Vec<(String, Fact)>,
    /// The graph's outputs.
    outputs: Vec<Operand>,
    heap_slots: usize,
    report: weft_device::ExecutionReport,
}
