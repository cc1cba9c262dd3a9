//! What a plan does, in order: the tasks, and the copies and conversions that bring values to where they are read.

use std::collections::{HashMap, HashSet};

use weft_ir::{OptimizedGraph, ValueId};

use super::order::order;
use super::task::{Side, Tasks, Work};
use crate::{Precision, Storage};

/// One thing that a plan does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Runs a task on its side.
    Run(usize),
    /// Brings a graph input into the plan's storage, on the device.
    ConvertInput {
        value: ValueId,
        /// Which of the caller's inputs it is.
        input: usize,
    },
    /// Brings a value into the type it is given back in, on the device.
    ConvertOutput {
        value: ValueId,
        /// The output buffer it is written to.
        buffer: usize,
    },
    /// Copies a value from the device to the host.
    Download(ValueId),
    /// Copies a value from the host to the device.
    Upload(ValueId),
}

/// The actions in order, and where the graph's inputs and outputs lie. Every value here has memory of its own.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    pub(super) actions: Vec<Action>,
    /// Which of the caller's inputs are copied to the device.
    pub(super) uploaded_inputs: HashSet<usize>,
    /// Graph inputs that kernels read as the caller gives them.
    pub(super) inputs_in_place: HashMap<ValueId, usize>,
    pub(super) outputs: Outputs,
}

/// Where the graph's outputs are given back from.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    /// The value that each output buffer holds; outputs that are views of one value share it.
    pub(super) buffers: Vec<ValueId>,
    /// Values that kernels write as the caller gets them, with their buffers.
    pub(super) in_place: HashMap<ValueId, usize>,
    /// For each graph output, its buffer; `None` where the host has it.
    pub(super) sources: Vec<Option<usize>>,
}

/// Orders the tasks, and puts copies and conversions between them.
pub(super) fn schedule(graph: &OptimizedGraph, tasks: &Tasks, precision: Precision) -> Schedule {
    Scheduler { graph, tasks, precision, producers: producers(tasks) }.schedule()
}

/// The task that produces each value.
fn producers(tasks: &Tasks) -> HashMap<ValueId, usize> {
    let mut producers = HashMap::new();
    for (index, task) in tasks.tasks.iter().enumerate() {
        producers.extend(task.outputs.iter().flatten().map(|&id| (id, index)));
    }
    producers
}

struct Scheduler<'a> {
    graph: &'a OptimizedGraph,
    tasks: &'a Tasks,
    precision: Precision,
    producers: HashMap<ValueId, usize>,
}

impl Scheduler<'_> {
    fn schedule(&self) -> Schedule {
        let mut schedule = Schedule { outputs: self.outputs(), ..Default::default() };
        let sides: Vec<Side> = self.tasks.tasks.iter().map(|task| task.side()).collect();
        let needed: Vec<Vec<ValueId>> = (0..sides.len()).map(|task| self.needed(task)).collect();
        let dependencies: Vec<Vec<usize>> =
            needed.iter().map(|needed| self.dependencies(needed)).collect();
        let read_on_device: HashSet<ValueId> = (0..sides.len())
            .filter(|&task| sides[task] == Side::Device)
            .flat_map(|task| needed[task].iter().copied())
            .collect();
        let mut brought = HashSet::new();
        for task in order(&sides, &dependencies) {
            for &id in needed[task].iter() {
                if self.origin(id) != Some(sides[task]) && brought.insert((id, sides[task])) {
                    self.bring(id, sides[task], &mut schedule);
                }
            }
            schedule.uploaded_inputs.extend(self.given(task));
            schedule.actions.push(Action::Run(task));
            for &id in self.tasks.tasks[task].outputs.iter().flatten() {
                let outputs = &schedule.outputs;
                let buffer = outputs.buffers.iter().position(|&value| value == id);
                match (sides[task], buffer) {
                    (Side::Host, _) if read_on_device.contains(&id) => {
                        schedule.actions.push(Action::Upload(id));
                    }
                    (Side::Device, Some(buffer)) if !outputs.in_place.contains_key(&id) => {
                        schedule.actions.push(Action::ConvertOutput { value: id, buffer });
                    }
                    _ => {}
                }
            }
        }
        schedule
    }

    /// The values that a task needs on its side, constants left out.
    fn needed(&self, task: usize) -> Vec<ValueId> {
        let reads = self.tasks.tasks[task].reads();
        let mut roots: Vec<ValueId> =
            reads.into_iter().map(|id| self.tasks.views.root(id)).collect();
        roots.retain(|&id| self.graph.graph().constant(id).is_none());
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    /// The inputs of the graph that a task reads as the caller gives them.
    fn given(&self, task: usize) -> Vec<usize> {
        let task = &self.tasks.tasks[task];
        let Work::Device { given, .. } = &task.work else { return Vec::new() };
        let ids = given.iter().filter_map(|&index| task.inputs[index]);
        ids.filter_map(|id| self.input(id)).collect()
    }

    fn input(&self, id: ValueId) -> Option<usize> {
        self.graph.graph().required_inputs().position(|input| input == id)
    }

    fn dependencies(&self, needed: &[ValueId]) -> Vec<usize> {
        let mut tasks: Vec<usize> =
            needed.iter().filter_map(|id| self.producers.get(id).copied()).collect();
        tasks.sort_unstable();
        tasks.dedup();
        tasks
    }

    /// The side that a value is produced on; `None` for a graph input.
    fn origin(&self, id: ValueId) -> Option<Side> {
        self.producers.get(&id).map(|&task| self.tasks.tasks[task].side())
    }

    /// Makes a value readable on a side that it was not produced on.
    fn bring(&self, id: ValueId, to: Side, schedule: &mut Schedule) {
        match (self.origin(id), to) {
            (None, Side::Device) => {
                let input = self.input(id).expect("what no task produces is an input of the graph");
                schedule.uploaded_inputs.insert(input);
                if self.keeps_type(id) {
                    schedule.inputs_in_place.insert(id, input);
                } else {
                    schedule.actions.push(Action::ConvertInput { value: id, input });
                }
            }
            (Some(Side::Device), Side::Host) => schedule.actions.push(Action::Download(id)),
            // The caller's tensors are on the host, and what the host produces is uploaded at once.
            _ => {}
        }
    }

    fn outputs(&self) -> Outputs {
        let mut outputs = Outputs::default();
        for &id in self.graph.graph().outputs() {
            let root = self.tasks.views.root(id);
            if self.origin(root) != Some(Side::Device) {
                outputs.sources.push(None);
                continue;
            }
            let known = outputs.buffers.iter().position(|&value| value == root);
            let buffer = known.unwrap_or(outputs.buffers.len());
            if known.is_none() {
                outputs.buffers.push(root);
            }
            if self.keeps_type(root) {
                outputs.in_place.insert(root, buffer);
            }
            outputs.sources.push(Some(buffer));
        }
        outputs
    }

    /// True where the device stores a value in its own type.
    fn keeps_type(&self, id: ValueId) -> bool {
        let data_type = self.graph.fact(id).data_type;
        let storage = data_type.and_then(|data_type| self.precision.storage_of(data_type));
        storage == data_type.and_then(Storage::exact)
    }
}
